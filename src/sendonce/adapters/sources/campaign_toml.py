"""A campaign in a TOML file. Whatever is wrong with it is told with its line, and nothing is made of it.

name = "Pumps, autumn"
tenant = "acme"
direction = "pumps"

[window]
days = ["mon", "tue", "wed", "thu", "fri"]
from = "09:00"
to = "18:00"
timezone = "Europe/Moscow"

[[step]]
template = "first.md"

[[step]]
after = "3d"
subject = "Re: {{ company }}"
text = "…"

[brakes]
bounce = 0.03
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

from sendonce.domain.campaigns.brakes import Limits, Rule
from sendonce.domain.campaigns.campaign_files import CampaignFile, StepSource, parse_delay
from sendonce.domain.campaigns.windows import Window, parse_days, parse_hour, parse_zone
from sendonce.domain.people.directions import checked_name, tenant_named
from sendonce.errors import BadInput

_TOP = ("name", "tenant", "direction", "window", "step", "brakes")
_WINDOW = ("days", "from", "to", "timezone", "holidays")
_STEP = ("template", "subject", "text", "after")
_BRAKES = tuple(Rule)
_HEADER = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_.-]+)\s*\]\]?")
_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*=""")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_MAX_STEPS = 20
_LONGEST_NAME = 200

T = TypeVar("T")


def read_campaign(text: str) -> CampaignFile:
    """Raises BadInput with the line, for the first thing that is wrong."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise _not_toml(exc, text) from exc
    return _Reader(found, _Lines(text)).read()


def _not_toml(exc: tomllib.TOMLDecodeError, text: str) -> BadInput:
    place = _AT_LINE.search(str(exc))
    line = int(place[1]) if place else text.count("\n") + 1
    what = _AT_LINE.sub("", str(exc)).removesuffix("(at end of document)").strip()
    return BadInput(f"Line {line}: this is not TOML: {what}. Texts are put in quotes.")


class _Lines:
    """On which line each key and each table stands."""

    def __init__(self, text: str) -> None:
        self._at: dict[tuple[str, int, str], int] = {}
        table, counts = "", {"": 0}
        for number, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.match(line):
                table = header[1]
                counts[table] = counts.get(table, -1) + 1
                self._at.setdefault((table, counts[table], ""), number)
            elif key := _KEY.match(line):
                self._at.setdefault((table, counts.get(table, 0), key[1]), number)

    def of(self, table: str, index: int, key: str = "") -> int:
        """The line of a key, else of its table, else the first."""
        places = ((table, index, key), (key, 0, ""), (table, index, ""))
        return next((self._at[place] for place in places if place in self._at), 1)


class _Reader:
    def __init__(self, found: Mapping[str, Any], lines: _Lines) -> None:
        self._found = found
        self._lines = lines

    def read(self) -> CampaignFile:
        self._refuse_unknown(self._found, _TOP, "", 0)
        name, tenant, direction = (
            self._text(self._found, "", 0, key, required=True) for key in ("name", "tenant", "direction")
        )
        self._parsed(_check_name, name, "", 0, "name")
        self._parsed(tenant_named, tenant, "", 0, "tenant")
        self._parsed(partial(checked_name, "direction"), direction, "", 0, "direction")
        return CampaignFile(name, tenant, direction, self._steps(), self._window(), self._brakes())

    def _steps(self) -> tuple[StepSource, ...]:
        tables = self._found.get("step", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables) or not tables:
            raise self._wrong("", 0, "step", "a campaign has at least one [[step]] with its letter")
        if len(tables) > _MAX_STEPS:
            raise self._wrong("step", _MAX_STEPS, "", f"a campaign has at most {_MAX_STEPS} steps")
        return tuple(self._step(index, table) for index, table in enumerate(tables))

    def _step(self, index: int, table: Mapping[str, Any]) -> StepSource:
        self._refuse_unknown(table, _STEP, "step", index)
        template, subject, text = (
            self._text(table, "step", index, key) for key in ("template", "subject", "text")
        )
        if template and (subject or text):
            raise self._wrong(
                "step", index, "template", "a step has a template, or a subject and a text, not both"
            )
        if not template and not (subject and text):
            raise self._wrong("step", index, "", 'a step needs template = "first.md", or subject and text')
        if index == 0 and "after" in table:
            raise self._wrong("step", 0, "after", "the first step is after nothing: leave it out")
        if index > 0 and "after" not in table:
            raise self._wrong("step", index, "", 'a follow-up says how long it waits: after = "3d"')
        after = self._parsed(parse_delay, table["after"], "step", index, "after") if index else timedelta()
        return StepSource(
            template or None, subject or None, text or None, after, self._lines.of("step", index)
        )

    def _window(self) -> Window:
        table = self._table("window", _WINDOW)
        usual = Window()
        days = self._parsed(parse_days, table["days"], "window", 0, "days") if "days" in table else usual.days
        opens = (
            self._parsed(parse_hour, table["from"], "window", 0, "from") if "from" in table else usual.opens
        )
        closes = self._parsed(parse_hour, table["to"], "window", 0, "to") if "to" in table else usual.closes
        if closes <= opens:
            raise self._wrong(
                "window",
                0,
                "to",
                f"the window never opens: it closes at {closes:%H:%M}, not after {opens:%H:%M}",
            )
        zone = self._text(table, "window", 0, "timezone") or None
        if zone is not None:
            self._parsed(parse_zone, zone, "window", 0, "timezone")
        holidays = self._parsed(_parse_holidays, table.get("holidays", []), "window", 0, "holidays")
        return Window(days, opens, closes, zone, holidays)

    def _brakes(self) -> Limits:
        table = self._table("brakes", _BRAKES)
        limits = Limits()
        for key, value in table.items():
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise self._wrong("brakes", 0, key, f"{key} is a number, not {value!r}")
            limits = self._parsed(partial(_with_share, limits, key), value, "brakes", 0, key)
        return limits

    def _table(self, name: str, known: Iterable[str]) -> Mapping[str, Any]:
        table = self._found.get(name, {})
        if not isinstance(table, dict):
            raise self._wrong("", 0, name, f"{name} is a table: write [{name}] on a line of its own")
        self._refuse_unknown(table, known, name, 0)
        return table

    def _text(
        self, table: Mapping[str, Any], name: str, index: int, key: str, *, required: bool = False
    ) -> str:
        value = table.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(name, index, key, f"{key} is a text in quotes, not {value!r}")
        if required and not value.strip():
            raise self._wrong(name, index, key, f'{key} is missing: write {key} = "…"')
        return value.strip()

    def _refuse_unknown(self, table: Mapping[str, Any], known: Iterable[str], name: str, index: int) -> None:
        names = list(known)
        for key in table:
            if key not in names:
                close = get_close_matches(key[:60], names, n=1, cutoff=0.7)
                meant = f" Did you mean {close[0]}?" if close else f" Known are {', '.join(names)}."
                raise self._wrong(name, index, key, f"there is no {key[:60]!r} here.{meant}".rstrip("."))

    def _parsed(self, parse: Callable[[Any], T], value: Any, name: str, index: int, key: str) -> T:
        try:
            return parse(value)
        except BadInput as exc:
            raise self._wrong(name, index, key, str(exc).rstrip(".")) from exc

    def _wrong(self, name: str, index: int, key: str, what: str) -> BadInput:
        end = "" if what.endswith("?") else "."
        return BadInput(f"Line {self._lines.of(name, index, key)}: {what}{end}")


def _with_share(limits: Limits, rule: str, share: float) -> Limits:
    changes: dict[str, Any] = {rule: share}
    return replace(limits, **changes)


def _check_name(name: str) -> None:
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise BadInput(f"name is one line of at most {_LONGEST_NAME} characters, not {name[:60]!r}.")


def _parse_holidays(days: object) -> frozenset[date]:
    if not isinstance(days, list):
        raise BadInput(f'holidays is a list like ["2026-12-31"], not {days!r}.')
    return frozenset(map(_parse_holiday, days))


def _parse_holiday(day: object) -> date:
    if isinstance(day, date) and not isinstance(day, datetime):
        return day
    try:
        return date.fromisoformat(str(day))
    except ValueError:
        raise BadInput(f'A holiday is written "2026-12-31", not {str(day)!r}.') from None
