"""A fast stand-in for SES: answers SendEmail at once (or after a latency), and counts.

    python -m bench.ses_sink PORT LATENCY

It checks no signature and no limit; the sandbox does that, and is slower for it. What it knows is
told at /tally and /times, which only the benchmark asks.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from array import array
from typing import cast

import uvloop

# The answer to every question: about the account, and about the sender before a mailout is started.
_ACCOUNT = {
    "SendingEnabled": True,
    "VerifiedForSendingStatus": True,
    "SendQuota": {"Max24HourSend": -1.0, "MaxSendRate": 1_000_000.0, "SentLast24Hours": 0.0},
}
# SES's own message ids have 60 characters.
_ACCEPTED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 78\r\n\r\n"
    b'{"MessageId":"0100018f0bench-%012d-0000-0000-0000-000000000000-000000"}'
)
_JOB = b'"Name":"job","Value":"'
_JOB_SPACED = b'"Name": "job", "Value": "'


class Tally:
    def __init__(self) -> None:
        self.times = array("d")
        self.letters: set[bytes] = set()

    def note(self, body: bytes) -> int:
        """Count one SendEmail; letters are told apart by their tag ``job``."""
        self.times.append(time.monotonic())
        for mark in (_JOB, _JOB_SPACED):
            at = body.find(mark, 0, 2048)
            if at < 0:
                at = body.find(mark, len(body) - 2048 if len(body) > 2048 else 0)
            if at >= 0:
                start = at + len(mark)
                self.letters.add(body[start : body.index(b'"', start)])
                break
        return len(self.times)


class Sink(asyncio.Protocol):
    def __init__(self, tally: Tally, latency: float) -> None:
        self._tally = tally
        self._latency = latency
        self._chunks: list[bytes] = []
        self._size = 0
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        if self._size < self._needed:
            return
        request = b"".join(self._chunks)
        end = request.find(b"\r\n\r\n")
        if end < 0:
            return
        head = request[:end]
        length = _content_length(head)
        if b"100-continue" in head and self._size == end + 4 and length:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if len(request) < end + 4 + length:
            self._chunks, self._needed = [request], end + 4 + length
            return
        self._chunks, self._size, self._needed = [], 0, 0
        self._answer(head, request[end + 4 :])

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"POST"):
            answer = _ACCEPTED % self._tally.note(body)
            if self._latency:
                asyncio.get_running_loop().call_later(self._latency, self._transport.write, answer)
            else:
                self._transport.write(answer)
            return
        path = head.split(b" ", 2)[1]
        if path == b"/forget":
            self._tally.times = array("d")
            self._tally.letters.clear()
        told = {
            b"/tally": {"received": len(self._tally.times), "distinct": len(self._tally.letters)},
            b"/times": list(self._tally.times) if path == b"/times" else [],
        }
        self._transport.write(_as_http(told.get(path, _ACCOUNT)))


def _content_length(head: bytes) -> int:
    lowered = head.lower()
    at = lowered.find(b"content-length:")
    if at < 0:
        return 0
    end = lowered.find(b"\r\n", at)
    return int(lowered[at + 15 : end if end >= 0 else None])


def _as_http(answer: object) -> bytes:
    body = json.dumps(answer).encode()
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()).encode()
    return (
        b"HTTP/1.1 200 OK\r\nDate: %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (date, len(body), body)
    )


async def _serve(port: int, latency: float) -> None:
    tally = Tally()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Sink(tally, latency), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), float(sys.argv[2])))
