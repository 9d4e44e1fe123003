"""Pacing by permits: how letters leave at a rate that the receiver, too, sees kept.

There are as many permits as letters a second. A letter takes one, and the permit comes back one
second after the letter's *reply*. Two uses of a permit are therefore at least a second apart where
it counts, at the receiver, whatever the network does in between; a log of write times is not
(writes a second apart may arrive closer). The price is a rate of r / (1 + latency).

A smooth schedule on top spreads the permits over the second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import floor

from sendonce.domain.engine.outcomes import Deferred

PERMIT_LEASE = 10.0
"""Seconds for which a worker's share of the rate is its own in the store."""
PERMIT_TRUST = 8.0
"""Seconds after the start of a renewal at which the holder stops using its permits."""
PERMIT_GRACE = 1.0
"""Seconds after the end of a lease before its permits go to others: the last letter's second."""
RETURN_AFTER = 1.0
# Clocks tick in steps, and a receiver may count the ends of its window in.
MARGIN = 0.0005
# How far behind its schedule a stalled sender may be and still catch up.
CATCH_UP = 0.25


class Pacer:
    """The permits of one process. Times are seconds of any monotonic clock."""

    def __init__(self, permits: int, now: float) -> None:
        """A new process starts with all permits out: its predecessor may have used them just now."""
        self._home: deque[float] = deque([now + RETURN_AFTER + MARGIN] * permits)
        self._out = 0
        self._target = permits
        self._next = now + RETURN_AFTER
        self._hold_until = now

    @property
    def held(self) -> int:
        """Permits that are in use, resting or ready."""
        return len(self._home) + self._out

    @property
    def rate(self) -> int:
        return self._target

    def resize(self, permits: int, now: float) -> None:
        """Another share of the rate. New permits rest first; surplus ones retire as they come home."""
        self._target = permits
        while self.held < permits:
            self._home.append(now + RETURN_AFTER + MARGIN)
        self._retire(now)

    def _retire(self, now: float) -> None:
        """Let go of permits over the target, but only of those that rested their second."""
        while self.held > self._target and self._home and self._home[0] <= now:
            self._home.popleft()

    def wait(self, now: float) -> float:
        """Seconds until a letter may leave; 0 for at once. ``RETURN_AFTER`` while no permit is at hand."""
        self._retire(now)
        surplus = self.held - self._target
        if surplus >= len(self._home):
            return RETURN_AFTER
        return max(self._home[surplus] - now, self._next - now, self._hold_until - now, 0.0)

    def take(self, now: float) -> None:
        """Use a permit; only when wait() said 0."""
        assert self._target > 0
        self._home.popleft()
        self._out += 1
        self._next = max(self._next, now - CATCH_UP) + 1.0 / self._target

    def give_back(self, now: float) -> None:
        """The reply came, or the sender gave up: the permit rests for a second."""
        self._out -= 1
        self._home.append(now + RETURN_AFTER + MARGIN)

    def hold(self, until: float) -> None:
        """The provider said "not now": nothing leaves before ``until``."""
        self._hold_until = max(self._hold_until, until)


class Unpaced:
    """No limit of our own: only a provider's "not now" holds letters back."""

    rate = 0
    held = 0

    def __init__(self) -> None:
        self._hold_until = 0.0

    def resize(self, permits: int, now: float) -> None:
        """Nothing to share out."""

    def wait(self, now: float) -> float:
        return max(self._hold_until - now, 0.0)

    def take(self, now: float) -> None:
        """Always allowed."""

    def give_back(self, now: float) -> None:
        """Nothing was taken."""

    def hold(self, until: float) -> None:
        self._hold_until = max(self._hold_until, until)


class ProviderRest:
    """A provider that says "not now" is left alone for a while, longer each time."""

    def __init__(self) -> None:
        self._times = 0
        self.reason = ""
        self.until = 0.0

    def extend(self, outcome: Deferred, now: float) -> float:
        """It said so again: until when nothing leaves. What several connections hear at once counts once."""
        if now >= self.until:
            self._times = min(self._times + 1, 6)
        asked = outcome.retry_after if outcome.retry_after is not None else 1.0
        self.until = now + max(asked, min(0.25 * 2.0**self._times, 10.0))
        self.reason = outcome.reason
        return self.until

    def end(self) -> None:
        """It took a letter, or refused one for the letter's own sake."""
        self._times = 0


class ClaimSize:
    """How many jobs make a group: by the rate that is permitted, and by the rate that is reached."""

    def __init__(self, pacer: Pacer | Unpaced, connections: int, batch_size: int) -> None:
        self._pacer = pacer
        self._batch_size = batch_size
        # Before anything is known, a few letters a connection.
        self._reached = connections * 16.0

    def observe(self, settled: int, seconds: float) -> None:
        """So many letters were settled in so many seconds."""
        if settled and seconds > 0:
            self._reached += 0.3 * (settled / seconds - self._reached)

    def now(self) -> int:
        permitted = float(self._pacer.rate or 1e9)
        return group_size(min(permitted, self._reached), self._batch_size)


def group_size(rate: float, batch_size: int) -> int:
    """How many jobs to claim at once: a quarter of a second's worth.

    More would only let the suppression check grow stale (50 at 6/s are eight seconds).
    """
    return max(1, min(floor(rate * 0.25), batch_size))


def fair_share(rate: int, worker_id: str, others: Mapping[str, int], held: int) -> int:
    """How many permits a worker may hold, given what the others hold. Their sum never exceeds the rate.

    A worker above its share is told the share and retires permits as they come home; one below it
    gets what the others have let go of.
    """
    everybody = sorted([worker_id, *others])
    base, extra = divmod(rate, len(everybody))
    fair = base + (1 if everybody.index(worker_id) < extra else 0)
    if held >= fair:
        return fair
    free = max(rate - sum(others.values()), 0)
    return min(fair, free)
