"""A link with latency: forwards TCP both ways, every byte a fixed time later.

python -m bench.slow_link PORT TO_PORT SECONDS_EACH_WAY
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop


class End(asyncio.Protocol):
    """One end of a forwarded connection; what comes in here leaves at ``other`` after the delay."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._loop = asyncio.get_running_loop()
        self.other: asyncio.Future[asyncio.Transport] = self._loop.create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._loop.call_later(self._delay, self._forward, data)

    def _forward(self, data: bytes) -> None:
        if not self.other.done():
            self.other.add_done_callback(lambda _: self._forward(data))
        elif not self.other.result().is_closing():
            self.other.result().write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's signature)
        self._loop.call_later(self._delay, self._hang_up)

    def _hang_up(self) -> None:
        if self.other.done():
            self.other.result().close()


class Door(End):
    """The near end: connects onward when somebody comes."""

    def __init__(self, delay: float, to_port: int) -> None:
        super().__init__(delay)
        self._to_port = to_port
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._task = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        far_transport, far = await self._loop.create_connection(
            lambda: End(self._delay), "127.0.0.1", self._to_port
        )
        far.other.set_result(cast(asyncio.Transport, self.transport))
        self.other.set_result(far_transport)


async def _serve(port: int, to_port: int, delay: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Door(delay, to_port), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
