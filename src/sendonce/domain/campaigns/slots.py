"""Slots: when the next letter of a sender may leave.

A limit of so many letters in a stretch of time holds for *every* stretch, wherever it begins, however late
letters leave. So a letter is planned only where fewer than that are *taken*: those that are still under way,
whatever their slot, and those that left within the stretch before now. Proof: of the letters that left in any
one stretch, look at the one that was planned last. Every other was under way at that moment, or had left
less than a stretch before it, so all of them were counted.

Within its limits a sender spreads its letters over the hours that are left, with jitter: nobody writes
forty letters at nine sharp.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
# Of a limit that is somebody else's guess, a tenth stays unused.
_SHARE_OF_HOURLY = 0.9


class Taken(NamedTuple):
    """Letters that are under way, and those that left since a moment."""

    under_way: int
    left: int


@dataclass(frozen=True, slots=True)
class Limit:
    count: int
    stretch: timedelta

    def room(self, taken: Taken) -> int:
        """How many more letters may be planned now, with so many taken since a stretch ago."""
        return self.count - taken.under_way - taken.left


def hourly(count: int) -> Limit:
    return Limit(max(1, int(count * _SHARE_OF_HOURLY)), HOUR)


@dataclass(slots=True)
class Quota:
    """What one limit still allows in a round. Senders and campaigns that share a limit share its quota."""

    left: int


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
