"""A deadline that moves with every request and is hardly ever reached: moving it costs no timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """Calls ``ring`` when the last deadline that was set is over. Its timer follows lazily."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ring = ring
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        self._deadline = self._loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self.stop()
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._on_timer)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._on_timer)
        else:
            self._ring()
