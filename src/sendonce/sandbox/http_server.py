"""A small HTTP/1.1 server: bytes to requests, replies to bytes, and replies that break on purpose."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import uuid
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import parse_qs

import httptools

MAX_BODY = 96 * 1024 * 1024  # a letter of 40 MB in base64 and JSON, with room to be told that it is too large


# Of an answer without end.
_BETWEEN_BODIES = 0.01
_ENOUGH_TO_SEND = 1 << 20


@dataclass(slots=True)
class Request:
    method: str
    path: str  # as it came, still percent-encoded: signatures are computed over that
    query: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    def parameters(self) -> dict[str, str]:
        """The query. A plus stands for itself, as people type it in addresses."""
        return {name: values[-1] for name, values in parse_qs(self.query.replace("+", "%2B")).items()}


class Ending(Enum):
    """What happens to the connection with, or instead of, the reply."""

    WHOLE = "the reply, and the connection stays"
    CLOSE = "no reply, an orderly close"
    RESET = "no reply, a reset"
    CUT = "half of the reply's body, then a close"
    GARBAGE = "bytes that are not HTTP, then a close"
    ENDLESS = "the reply's body again and again, until the client has enough"


@dataclass(frozen=True, slots=True)
class Reply:
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    ending: Ending = field(default=Ending.WHOLE)


Answer = Callable[[Request], Awaitable[Reply]]


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value, ensure_ascii=False).encode())


class HttpServer:
    """Serves ``answer`` on loopback. ``now`` gives the time for the Date header."""

    def __init__(self, answer: Answer, now: Callable[[], float]) -> None:
        self.answer = answer
        self.now = now
        self.connections: set[_Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, port: int) -> int:
        """Open the port and return its number."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=1024)
        self._server = server
        number: int = server.sockets[0].getsockname()[1]
        return number

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for connection in tuple(self.connections):
            connection.abort()
        if self._server is not None:
            await self._server.wait_closed()


class _Connection(asyncio.Protocol):
    """One client. Requests of a connection are answered one after another, in order."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport
        self.on_message_begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has another ancestry
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        # A request that was read whole is carried out although its sender is gone, as SES would.
        self._server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, ValueError):
            self._refuse(400)

    # httptools calls these while it parses.

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > MAX_BODY:
            self._body.clear()
            self._refuse(413)
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._size > MAX_BODY:
            return
        path, _, query = self._url.decode("ascii").partition("?")
        method = self._parser.get_method().decode("ascii")
        self._waiting.append(Request(method, path, query, self._headers, b"".join(self._body)))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve())
            self._server.tasks.add(self._task)
            self._task.add_done_callback(self._server.tasks.discard)

    async def _serve(self) -> None:
        try:
            while self._waiting:
                request = self._waiting.popleft()
                reply = await self._server.answer(request)
                if reply.ending is Ending.ENDLESS:
                    await self._send_without_end(reply)
                else:
                    self._send(request, reply)
        except BaseException:
            self._transport.abort()
            raise
        self._task = None

    def _send(self, request: Request, reply: Reply) -> None:
        if self._transport.is_closing():
            return
        if reply.ending is Ending.WHOLE:
            self._transport.write(self._head(request, reply) + reply.body)
            if request.headers.get("connection", "").lower() == "close":
                self._transport.close()
        elif reply.ending is Ending.RESET:
            self._reset()
        else:
            if reply.ending is Ending.CUT:
                self._transport.write(self._head(request, reply) + reply.body[: len(reply.body) // 2])
            elif reply.ending is Ending.GARBAGE:
                self._transport.write(b"\x15\x03\x01\x00\x02\x02\x16 not a word of HTTP \xff\xfe\r\n\r\n")
            self._transport.close()

    async def _send_without_end(self, reply: Reply) -> None:
        lines = (f"HTTP/1.1 {reply.status} OK", f"Content-Type: {reply.content_type}", "Connection: close")
        self._transport.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        while not self._transport.is_closing():
            if self._transport.get_write_buffer_size() < _ENOUGH_TO_SEND:
                self._transport.write(reply.body)
            await asyncio.sleep(_BETWEEN_BODIES)

    def _head(self, request: Request, reply: Reply) -> bytes:
        lines = [
            f"HTTP/1.1 {reply.status} {_phrase(reply.status)}",
            f"Date: {formatdate(self._server.now(), usegmt=True)}",
            f"Content-Type: {reply.content_type}",
            f"Content-Length: {len(reply.body)}",
            f"x-amzn-RequestId: {uuid.uuid4()}",
            *(f"{name}: {value}" for name, value in reply.headers),
        ]
        if request.headers.get("connection", "").lower() == "close":
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def _reset(self) -> None:
        """Close with a RST: the peer sees "connection reset", not an orderly end."""
        raw = self._transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _refuse(self, status: int) -> None:
        if not self._transport.is_closing():
            phrase = HTTPStatus(status).phrase
            self._transport.write(
                f"HTTP/1.1 {status} {phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
            self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def _phrase(status: int) -> str:
    """Notion answers 529, which no RFC knows."""
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"
