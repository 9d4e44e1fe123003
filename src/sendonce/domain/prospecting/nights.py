"""The night window: when searches are submitted, because they cost less then."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

MARGIN = timedelta(minutes=5)
"""Nothing is submitted so shortly before the end: the provider's clock decides the price."""

SHORTEST = 30
"""Minutes: of a shorter window the margin would leave nothing."""
_DAY = 24 * 60

_WRITTEN = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]) ?[-–] ?([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True, slots=True)
class Hours:
    """From the beginning of the minute ``first`` to the end of the minute ``last``, also over midnight."""

    first: time
    last: time

    @property
    def end(self) -> time:
        return (datetime.combine(date.min, self.last) + timedelta(minutes=1)).time()

    @property
    def minutes(self) -> int:
        """0 is a whole day."""
        return (_minutes(self.end) - _minutes(self.first)) % _DAY

    def __str__(self) -> str:
        return f"{self.first:%H:%M}-{self.last:%H:%M}"


def read_hours(text: str) -> Hours:
    """``00:00-07:59``; raises ValueError, also for what is hardly open."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ValueError
    first_hour, first_minute, last_hour, last_minute = map(int, found.groups())
    hours = Hours(time(first_hour, first_minute), time(last_hour, last_minute))
    if 0 < hours.minutes < SHORTEST:
        raise ValueError
    return hours


def _minutes(clock: time) -> int:
    return clock.hour * 60 + clock.minute


@dataclass(frozen=True, slots=True)
class NightWindow:
    """Where clocks are turned, a time may come twice or not at all. Then the window opens at the later and
    closes at the earlier reading, so that the clock on the wall is inside it all the while."""

    hours: Hours
    zone: tzinfo

    @property
    def never_closes(self) -> bool:
        return not self.hours.minutes

    def closes_at(self, now: datetime) -> datetime | None:
        """When the open window closes for us; None while it is closed."""
        if self.never_closes:
            return now + timedelta(days=1)
        night = self._night_of(now)
        return night[1] if night and night[0] <= now < night[1] else None

    def opens_at(self, now: datetime) -> datetime:
        """``now`` while it is open, else when it opens next."""
        if self.closes_at(now):
            return now
        night = self._night_of(now)
        assert night is not None
        return night[0]

    def _night_of(self, now: datetime) -> tuple[datetime, datetime] | None:
        """The first night that is not over."""
        today = now.astimezone(self.zone).date()
        nights = (self._night(today + timedelta(days=days)) for days in range(-1, 4))
        return next(((start, end) for start, end in nights if now < end and start < end), None)

    def _night(self, day: date) -> tuple[datetime, datetime]:
        last_day = day if self.hours.first < self.hours.end else day + timedelta(days=1)
        start = max(self._readings(day, self.hours.first))
        return start, min(self._readings(last_day, self.hours.end)) - MARGIN

    def _readings(self, day: date, clock: time) -> tuple[datetime, datetime]:
        written = datetime.combine(day, clock, self.zone)
        return written.astimezone(UTC), written.replace(fold=1).astimezone(UTC)
