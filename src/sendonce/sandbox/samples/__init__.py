"""What the demo sends, and to whom: a letter, and a list made up from a few names and towns."""

from __future__ import annotations

from itertools import product
from pathlib import Path

LETTER = Path(__file__).parent / "letter.md"

_FIRST = ("Анна", "Борис", "Вера", "Глеб", "Дарья", "Emma", "Felix", "Greta", "Hugo", "Ida")
_LAST = ("Иванова", "Соколов", "Лебедева", "Новак", "Müller", "Rossi", "O'Brien", "Берг", "Lind", "Кац")
_TOWNS = ("Тверь", "Псков", "Омск", "Köln", "Torino", "Cork", "Riga", "Minsk", "Oslo", "Graz")


def subscriber_lines(count: int) -> list[str]:
    """A CSV file's lines: header, then ``count`` people."""
    people = list(product(_FIRST, _LAST, _TOWNS))
    lines = ["email,name,city"]
    for n in range(count):
        first, last, town = people[n % len(people)]
        lines.append(f"reader{n + 1:04d}@example.org,{first} {last},{town}")
    return lines
