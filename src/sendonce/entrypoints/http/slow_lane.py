"""Work for peers that have failed too often: one piece at a time, in a small share of the time.

Behind a proxy everybody has the proxy's address, so what comes from there cannot simply be refused: a genuine
event may be among the forged ones. Here it waits its turn, and the forgers pay with their own patience.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException

_SHARE = 0.03
_MOST_WAITING = 32


class SlowLane:
    def __init__(self, share: float = _SHARE, most_waiting: int = _MOST_WAITING) -> None:
        self._share = share
        self._most_waiting = most_waiting
        self._waiting = 0
        self._free = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn; 503, which asks SNS to come again, where too many wait already."""
        if self._waiting >= self._most_waiting:
            raise HTTPException(503, "Too many messages wait. Try again later.", {"Retry-After": "20"})
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        began = time.monotonic()
        try:
            yield
        finally:
            rest = (time.monotonic() - began) / self._share
            asyncio.get_running_loop().call_later(rest, self._free.release)
