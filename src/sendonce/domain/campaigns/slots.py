"""Slots: when the next letter of a sender may leave.

A limit of so many letters in a stretch of time holds for *every* stretch, wherever it begins: a letter
waits until the one that stands so many places before it is older than the stretch. A letter may leave a
little after its slot, so the stretch is taken a little longer: "slack" is by how much a worker may be late.

Within its limits a sender spreads its letters over the hours that are left, with jitter: nobody writes
forty letters at nine sharp.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
# Of a limit that is somebody else's guess, a tenth stays unused.
_SHARE_OF_HOURLY = 0.9


@dataclass(frozen=True, slots=True)
class Limit:
    count: int
    stretch: timedelta

    def earliest(self, taken: Sequence[datetime], after: datetime, slack: timedelta) -> datetime:
        """The first moment from ``after`` on at which one more keeps the limit; ``taken`` is in order."""
        if len(taken) < self.count:
            return after
        return max(after, taken[-self.count] + self.stretch + slack)


def hourly(count: int) -> Limit:
    return Limit(max(1, int(count * _SHARE_OF_HOURLY)), HOUR)


@dataclass
class Timetable:
    """The slots that were given, and the limits that the next one keeps."""

    limits: tuple[Limit, ...]
    slack: timedelta
    taken: list[datetime] = field(default_factory=list)

    @classmethod
    def of(cls, limits: Iterable[Limit], slack: timedelta, taken: Iterable[datetime]) -> Timetable:
        return cls(tuple(limits), slack, sorted(taken))

    def earliest(self, after: datetime) -> datetime:
        return max((limit.earliest(self.taken, after, self.slack) for limit in self.limits), default=after)

    def take(self, slot: datetime) -> None:
        insort(self.taken, slot)


def gap(opening: timedelta, letters_a_day: int, pace: float, seed: str) -> timedelta:
    """The time between two letters of a sender: an even share of the day's opening, a third more or less."""
    even = opening / max(1, letters_a_day) / pace
    return even * (0.7 + 0.6 * chance(seed))


def chance(seed: str) -> float:
    """From 0 to 1; the same for the same words."""
    return int.from_bytes(sha256(seed.encode()).digest()[:6]) / (1 << 48)


def next_day(sent_at: datetime, after: timedelta, zone_midnight: datetime) -> datetime:
    """When a follow-up is due: after its delay, and not on the day of the letter before it."""
    return max(sent_at + after, zone_midnight)
