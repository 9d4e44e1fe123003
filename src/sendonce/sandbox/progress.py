"""Lets somebody wait until something has come true, without asking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Progress:
    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, is_true: Callable[[], bool], timeout: float) -> bool:
        """True as soon as it is; False when the time is over."""
        try:
            async with asyncio.timeout(timeout):
                while not is_true():
                    future = asyncio.get_running_loop().create_future()
                    self._waiting.append(future)
                    await future
        except TimeoutError:
            return False
        return True
