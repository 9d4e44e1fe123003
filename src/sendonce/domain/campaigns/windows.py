"""When letters may leave: days of the week and hours of the day, by the recipient's clock, but for holidays.

Times of a window are what a clock on the wall shows there. On a day on which clocks go forward over the
start of a window it opens when they have; an hour that comes twice belongs to the window both times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sendonce.errors import BadInput

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# TOML writes times of its own with seconds.
_HOUR = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::00)?")
# A window that opens on a single day of the week, which is a holiday some weeks in a row.
_FARTHEST = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Opening:
    """From the first moment at which letters may leave until the first at which they may not."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Window:
    """``timezone`` is for recipients whose own is unknown; None takes the house's."""

    days: frozenset[int] = frozenset(range(5))
    opens: time = time(9)
    closes: time = time(18)
    timezone: str | None = None
    holidays: frozenset[date] = frozenset()

    def zone(self, recipients: str | None, usual: ZoneInfo) -> ZoneInfo:
        """The clock that a recipient's letters keep to: their own, else the window's, else the usual one.

        A zone that is unknown on this machine counts as none: names come and go with the tz database.
        """
        return next(filter(None, map(_zone_or_none, (recipients, self.timezone))), usual)

    def openings(self, after: datetime, zone: ZoneInfo) -> Iterator[Opening]:
        """Those that end after a moment, in order, for the next two months."""
        day = after.astimezone(zone).date()
        for _ in range(_FARTHEST.days):
            if day.weekday() in self.days and day not in self.holidays:
                start = datetime.combine(day, self.opens, zone).astimezone(after.tzinfo)
                end = datetime.combine(day, self.closes, zone).replace(fold=1).astimezone(after.tzinfo)
                if end > after and end > start:
                    yield Opening(max(start, after), end)
            day += timedelta(days=1)

    def next_open(self, after: datetime, zone: ZoneInfo) -> datetime:
        """The first moment from then on at which a letter may leave."""
        opening = next(self.openings(after, zone), None)
        if opening is None:
            raise BadInput(f"The window never opens in the {_FARTHEST.days} days after {after:%Y-%m-%d}.")
        return opening.start

    def is_open(self, moment: datetime, zone: ZoneInfo) -> bool:
        return next((o.start <= moment for o in self.openings(moment, zone)), False)


def parse_days(names: object) -> frozenset[int]:
    if not isinstance(names, list) or not names:
        raise BadInput(f'days is a list like ["mon", "tue"], not {names!r}.')
    wrong = [name for name in names if name not in DAYS]
    if wrong:
        raise BadInput(f"There is no day {wrong[0]!r}: they are {', '.join(DAYS)}.")
    return frozenset(DAYS.index(name) for name in names)


def parse_hour(text: object) -> time:
    match = _HOUR.fullmatch(str(text))
    if match is None:
        raise BadInput(f'A time of the day is written "09:00", not {text!r}.')
    return time(int(match[1]), int(match[2]))


def parse_zone(name: object) -> ZoneInfo:
    zone = _zone_or_none(str(name))
    if zone is None:
        raise BadInput(f"There is no time zone {name!r}: write it like Europe/Moscow.")
    return zone


def _zone_or_none(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
