"""The retry policy: when a letter that was proven not accepted is tried again, and when it is dead."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from sendonce.domain.engine.outcomes import Deferred


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits grow twofold from ``base`` to ``ceiling`` seconds, each shortened by up to a half at random."""

    max_tries: int = 6
    base: float = 60.0
    ceiling: float = 14_400.0

    def after(self, tries_before: int, outcome: Deferred, dice: Random) -> float | None:
        """Seconds to wait before the next try, or None when the tries are used up.

        A throttled letter uses up no try: the trouble was not its own.
        """
        if outcome.throttle:
            return outcome.retry_after if outcome.retry_after is not None else self.base
        if tries_before + 1 >= self.max_tries:
            return None
        if outcome.retry_after is not None:
            return outcome.retry_after
        wait = min(self.base * 2.0**tries_before, self.ceiling)
        return wait * dice.uniform(0.5, 1.0)
