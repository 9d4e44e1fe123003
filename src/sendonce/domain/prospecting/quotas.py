"""Limits as sliding windows: never more than so many in any span of so many seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PERMIT_LIFE = 1.0
"""Seconds within which a permit is to be used. A window counts so much longer, so that what was permitted at
its beginning and used late does not meet, at the provider, what was permitted after it. That halves the rate
of a limit per second; a shorter life would be wasted wherever a commit is slow."""


@dataclass(frozen=True, slots=True)
class Limit:
    count: int
    seconds: float

    @property
    def span(self) -> float:
        return self.seconds + PERMIT_LIFE


@dataclass(frozen=True, slots=True)
class WindowUse:
    """How much of a limit was used in its window; ``oldest_age`` is that of the oldest use in it."""

    limit: Limit
    used: float
    oldest_age: float = 0.0

    @property
    def left(self) -> int:
        return max(0, int(self.limit.count - self.used))


@dataclass(frozen=True, slots=True)
class Permit:
    """``granted`` of what was wanted; ``wait`` seconds until it is worth asking again, if not all was."""

    granted: int
    wait: float = 0.0


def permit(wanted: int, windows: Sequence[WindowUse]) -> Permit:
    granted = max(0, min([wanted, *(window.left for window in windows)]))
    if granted == wanted:
        return Permit(granted)
    full = [window for window in windows if window.left < wanted]
    return Permit(granted, max(window.limit.span - window.oldest_age for window in full))
