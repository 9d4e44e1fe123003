"""The letter that everybody sends (10 KB, two parts, personalised) and the people it goes to."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from sendonce.adapters.sources.markdown import read_markdown
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import CompiledLetter, compile_letter

SENDER = "news@bench.example"
FOOTER = "Bench Ltd, 1 Example Street, Riga LV-1001"
BASE_URL = "https://mail.bench.example"
SECRET = "no secret: letters of the benchmark stay on loopback"
MAILOUT = "01900000-0000-7000-8000-000000000000"

_GREETING = 'You asked, {{ name | default: "friend" }}, what became of the lamp that folds flat.\n\n'
_PARAGRAPH = (
    "The workshop was busy this autumn, and many of you asked what became of the lamp that folds flat. It "
    "stands on the window sill and does what it should: it gives light, it folds, and it does not fall when "
    "the cat walks past. We made forty of them and kept the one with the crooked foot.\n\n"
)
_NAMES = (
    "Anna",
    "Борис",
    "Zoë Müller",
    "Дмитрий Иванов",
    "José",
    "Elena",
    "O'Neill",
    "Мария",
    "Jan",
    "Ольга",
)
_CITIES = ("Riga", "Москва", "Gdańsk", "Bergen", "Казань")


def markdown() -> str:
    head = "---\nsubject: 'News for {{ name | default: \"you\" }}'\npreheader: What we made.\n---\n"
    russian = "Приходите в субботу: дверь открыта, чай горячий, и никто никуда не торопится.\n\n"
    return head + '# Hello, {{ name | default: "friend" }}!\n\n' + _GREETING + russian + _PARAGRAPH * 9


def letter() -> Letter:
    return read_markdown(markdown())


def message_settings() -> MessageSettings:
    return MessageSettings(SENDER, None, None, FOOTER, BASE_URL, "bench.example", SECRET.encode())


def compiled() -> CompiledLetter:
    return compile_letter(letter(), message_settings(), MAILOUT)


def one_message() -> bytes:
    """A message as our engine builds it."""
    job = "01900000-0000-7000-8000-000000000001"
    return compiled().build(job, *person(1), date=datetime(2025, 1, 1, tzinfo=UTC))


def write_for_peers(path: Path) -> Path:
    """The same letter as data, for programs that build it their own way."""
    path.write_text(json.dumps(asdict(letter()), ensure_ascii=False), encoding="utf-8")
    return path


def person(number: int) -> tuple[str, dict[str, str]]:
    """The address and the fields of one of the recipients."""
    name = f"{_NAMES[number % len(_NAMES)]} {number % 1000}"
    fields = {"name": name, "city": _CITIES[number % len(_CITIES)]}
    return f"reader{number:07d}@bench.example", fields


def write_people(path: Path, count: int) -> Path:
    """A clean list: as many recipients as lines."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["email", "name", "city"])
        for number in range(count):
            address, fields = person(number)
            rows.writerow([address, fields["name"], fields["city"]])
    return path


def write_rough_list(path: Path, count: int) -> tuple[Path, int]:
    """A list as people really have them, and how many different good addresses are in it.

    One line in twenty repeats an address (half of those in capitals), one in a hundred holds none, and
    one in two hundred has a domain in Cyrillic.
    """
    dice = random.Random(2047)
    good: set[int] = set()
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["email", "name", "city"])
        for line in range(count):
            throw = dice.random()
            name, city = dice.choice(_NAMES), dice.choice(_CITIES)
            number = dice.randrange(line) if line and throw < 0.05 else line
            if 0.05 <= throw < 0.06:
                rows.writerow([f"not an address {line}", name, city])
                continue
            good.add(number)
            # An address is told by its number alone, so that a repeated line is a repeated address.
            domain = "пример.рф" if number % 200 == 7 else f"host{number % 5000}.bench.example"
            address = f"person{number}@{domain}"
            rows.writerow([address.upper() if throw < 0.025 else address, name, city])
    return path, len(good)
