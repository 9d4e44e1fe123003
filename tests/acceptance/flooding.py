"""A stranger with a small machine: ``python -m tests.acceptance.flooding KIND PORT TOPIC``, until killed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress

HOST = "127.0.0.1"
IMAGE = "1" * 64
PER_SECOND = 40
SQUATTERS = 1500
READERS = 300


def request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def dear_json(size: int, **fields: str) -> bytes:
    """JSON that takes long to read for its size."""
    text = json.dumps(fields)[:-1] + (", " if fields else "") + '"a": ['
    return (text + ",".join(['{"a":1}'] * ((size - len(text) - 10) // 8)) + "]}").encode()


async def post_for_ever(port: int, content: bytes, lanes: int = 8) -> None:
    async def lane() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection(HOST, port)
                try:
                    while True:
                        writer.write(content)
                        await asyncio.gather(asyncio.sleep(lanes / PER_SECOND), _read_answer(reader))
                finally:
                    writer.close()

    await asyncio.gather(*[lane() for _ in range(lanes)])


async def _read_answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))


async def hold(port: int, number: int, content: bytes) -> None:
    """So many connections that say this and nothing more, and come back when they are thrown out."""

    async def one() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(HOST, port, limit=1)
                try:
                    writer.write(content)
                    writer.transport.pause_reading()  # type: ignore[attr-defined]
                    while not writer.transport.is_closing():
                        await asyncio.sleep(0.5)
                        writer.write(b"")
                        if reader.at_eof():
                            break
                finally:
                    writer.close()
            await asyncio.sleep(0.2)

    await asyncio.gather(*[one() for _ in range(number)])


def floods(port: int, topic: str) -> dict[str, Callable[[], Coroutine[None, None, None]]]:
    largest = 255 * 1024
    forged = dear_json(largest, Type="Notification", TopicArn=topic, Message="x")
    head = b"GET /unsubscribe HTTP/1.1\r\nHost: a\r\nX: "
    image = f"GET /assets/{IMAGE} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    return {
        "json": lambda: post_for_ever(port, request("/send-mailout", dear_json(largest, auth_token="guess"))),
        "short json": lambda: post_for_ever(
            port, request("/send-mailout", dear_json(4000, auth_token="guess"))
        ),
        "forged events": lambda: post_for_ever(port, request("/ses-events", forged)),
        "slow heads": lambda: hold(port, SQUATTERS, head),
        "unread images": lambda: hold(port, READERS, image),
    }


KINDS = tuple(floods(0, ""))


if __name__ == "__main__":
    kind, port, topic = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    asyncio.run(floods(port, topic)[kind]())
