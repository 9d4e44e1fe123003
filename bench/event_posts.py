"""Posts events to a service over some connections, and unsubscribes people meanwhile.

    python -m bench.event_posts PORT CONNECTIONS BODIES [TOKENS]

``BODIES`` is a file with one SNS message a line. With ``TOKENS``, also one a line, somebody clicks an
unsubscribe link twenty times a second as long as events are posted. The tally is printed as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import uvloop

CLICKS_PER_SECOND = 20


class Carrier(asyncio.Protocol):
    """One kept connection: a request, its answer, the next request."""

    def __init__(self, requests: Iterator[bytes], verdicts: Counter[str]) -> None:
        self._requests = requests
        self._verdicts = verdicts
        self._received = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._post()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < _length(head):
            return
        self._received = b""
        accepted = head.startswith(b"HTTP/1.1 200 ")
        self._verdicts[json.loads(body)["verdict"] if accepted else head.split(b"\r\n")[0].decode()] += 1
        self._post()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the service hung up"))

    def _post(self) -> None:
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()


def _length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next(int(value) for name, _, value in lines if name == b"content-length")


async def _click(port: int, tokens: list[str], waited: list[float]) -> None:
    """People do not share connections, and do not wait for one another."""
    for token in cycle(tokens):
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        path = f"/unsubscribe?token={token}"
        body = b"List-Unsubscribe=One-Click"
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.read()
        writer.close()
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(f"an unsubscription was answered with {answer[:60]!r}")
        waited.append(time.monotonic() - began)
        await asyncio.sleep(max(0.0, 1 / CLICKS_PER_SECOND - waited[-1]))


async def _main(port: int, connections: int, bodies: list[bytes], tokens: list[str]) -> dict[str, Any]:
    head = b"POST /ses-events HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
    requests = iter([head % len(body) + body for body in bodies])
    verdicts: Counter[str] = Counter()
    waited: list[float] = []
    clicking = asyncio.create_task(_click(port, tokens, waited)) if tokens else None
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    carriers = [
        (await loop.create_connection(lambda: Carrier(requests, verdicts), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(carrier.done for carrier in carriers))
    seconds = time.monotonic() - began
    if clicking is not None:
        if clicking.done():
            clicking.result()
        clicking.cancel()
    return {"seconds": seconds, "verdicts": dict(verdicts), "waited": waited}


if __name__ == "__main__":
    port, connections, bodies_file, *tokens_file = sys.argv[1:]
    lines = Path(bodies_file).read_bytes().splitlines()
    tokens = Path(tokens_file[0]).read_text().split() if tokens_file else []
    print(json.dumps(uvloop.run(_main(int(port), int(connections), lines, tokens))))
