"""How often Notion may be asked.

Notion's limits moved over the years, from "an average of three requests a second" to a budget a minute that
depends on the plan. We stay below the oldest of them and obey Retry-After, whatever it says.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """``rate`` requests a second after a ``burst``; ``tries`` of one request with growing pauses between.

    ``patience`` is how long one call may wait in all before it gives up with ``Unavailable``: a workspace's
    Retry-After can be longer than a minute, and whoever asked should rather come back.
    """

    rate: float = 2.5
    burst: int = 3
    tries: int = 5
    first_pause: float = 0.5
    patience: float = 90.0
    request_seconds: float = 30.0

    def pause_before(self, retry: int) -> float:
        return float(self.first_pause * 2**retry)


class Pace:
    """A token bucket that all threads of a process share."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._lock = threading.Lock()
        self._tokens = float(policy.burst)
        self._counted = time.monotonic()
        self._closed_until = 0.0

    def wait_for_turn(self) -> float:
        """Take a place in the queue: how many seconds to wait for it."""
        with self._lock:
            now = time.monotonic()
            gained = (now - self._counted) * self._policy.rate
            self._tokens = min(float(self._policy.burst), self._tokens + gained) - 1
            self._counted = now
            queue = max(0.0, -self._tokens / self._policy.rate)
            return max(queue, self._closed_until - now)

    def close_for(self, seconds: float) -> None:
        """Notion asked everybody to wait."""
        with self._lock:
            self._closed_until = max(self._closed_until, time.monotonic() + seconds)
