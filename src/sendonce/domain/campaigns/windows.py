"""When letters may leave: days of the week and hours of the day, by the recipient's clock, but for holidays.

Times of a window are what a clock on the wall shows there. On a day on which clocks go forward over the
start of a window it opens when they have; an hour that comes twice belongs to the window both times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sendonce.errors import BadInput

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
# A window that opens on a single day of the week, which is a holiday some weeks in a row.
_FARTHEST = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Opening:
    """From the first moment at which letters may leave until the first at which they may not."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Window:
    """``timezone`` None is the recipient's own, or the direction's where it is unknown."""

    days: frozenset[int] = frozenset(range(5))
    opens: time = time(9)
    closes: time = time(18)
    timezone: str | None = None
    holidays: frozenset[date] = frozenset()

    def zone(self, recipients: str | None, usual: ZoneInfo) -> ZoneInfo:
        """The clock that a recipient's letters keep to."""
        name = self.timezone or recipients
        return ZoneInfo(name) if name else usual

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
    try:
        return time.fromisoformat(str(text))
    except ValueError:
        raise BadInput(f'A time of the day is written "09:00", not {text!r}.') from None


def parse_zone(name: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadInput(f"There is no time zone {name!r}: write it like Europe/Moscow.") from None
