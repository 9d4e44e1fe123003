"""When written letters leave: in working hours, spread, and never more than a limit in any 24 hours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from hashlib import sha256

DAY = timedelta(days=1)
# A letter may leave a little after its slot, so a day is counted a little longer.
_SLACK = timedelta(minutes=5)


LOOK_BACK = timedelta(days=8)
"""Longer than any letter waits for its slot and its retries."""


@dataclass(frozen=True, slots=True)
class Slot:
    """When a letter is to leave, and how many may in 24 hours."""

    at: datetime
    daily_limit: int


@dataclass(frozen=True, slots=True)
class WorkingHours:
    """On the clock of ``zone``. ``days`` count from Monday, which is 0."""

    opens: time
    closes: time
    zone: tzinfo
    days: frozenset[int] = frozenset(range(5))

    @property
    def length(self) -> timedelta:
        day = datetime(2000, 1, 3)  # noqa: DTZ001 (only the difference counts)
        return datetime.combine(day, self.closes) - datetime.combine(day, self.opens)

    def next_open(self, moment: datetime) -> datetime:
        """The moment itself if it is in working hours, else the next opening."""
        local = moment.astimezone(self.zone)
        for ahead in range(8):
            day = (local + timedelta(days=ahead)).date()
            if day.weekday() not in self.days:
                continue
            opens = datetime.combine(day, self.opens, self.zone)
            closes = datetime.combine(day, self.closes, self.zone)
            if local < opens:
                return opens.astimezone(moment.tzinfo)
            if local < closes:
                return moment
        raise AssertionError("a week has working days")


def slots_for(
    ids: Sequence[str], taken: Iterable[datetime], now: datetime, hours: WorkingHours, limit: int
) -> dict[str, datetime]:
    """A time for each of these letters, in order, as long as it is at most a day ahead.

    ``taken`` are the times of letters that left in the last 24 hours, or are to leave. The same letters get
    the same jitter, so planning twice makes no other picture.
    """
    if limit <= 0:
        return {}
    times = sorted(moment for moment in taken if moment > now - DAY - _SLACK)
    pause = hours.length / limit
    last = max([now - pause, *times])
    slots: dict[str, datetime] = {}
    for letter_id in ids:
        slot = hours.next_open(max(now, last + pause * _jitter(letter_id)))
        if len(times) >= limit:
            slot = hours.next_open(max(slot, times[-limit] + DAY + _SLACK))
        if slot > now + DAY:
            break
        slots[letter_id] = last = slot
        times.append(slot)
    return slots


def keeps_limit(slot: datetime, taken: Iterable[datetime], limit: int) -> bool:
    """Whether one more letter at ``slot`` leaves at most ``limit`` in every stretch of 24 hours."""
    times = sorted([*(moment for moment in taken if abs(moment - slot) < DAY), slot])
    ends = [moment for moment in times if moment >= slot]
    return all(sum(end - DAY < moment <= end for moment in times) <= limit for end in ends)


def _jitter(letter_id: str) -> float:
    """From 0.6 to 1.4 of the pause, by the letter's id."""
    return 0.6 + 0.8 * int.from_bytes(sha256(letter_id.encode()).digest()[:4]) / 2**32
