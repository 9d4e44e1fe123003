"""A small HTTP/1.1 client: one connection, one request at a time, and no retries of any kind.

It tells apart what matters to a sender: ``NotConnected`` (not a byte of a request left) and
``NoAnswer`` (the request may have been received, and nobody knows what became of it).
"""

from __future__ import annotations

import asyncio
import re
import select
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from sendonce.adapters.alarm import Alarm
from sendonce.adapters.web.exchanges import NoAnswer
from sendonce.domain.engine.hosts import is_loopback
from sendonce.errors import BadInput

MAX_RESPONSE_BYTES = 64 * 1024

# AWS does not say when it closes an idle connection. The shortest default among common servers is
# 5 s (Apache, Node); a request that crosses the server's FIN is lost in doubt, so we give up first.
IDLE_LIMIT_SECONDS = 4.0

# A slow uplink gets one more second for each 64 KB of the request.
_UPLOAD_BYTES_PER_SECOND = 64 * 1024

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\n]*)?")
_HEADER_LINE = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\r\n]*)")
_LENGTH = re.compile(r"[0-9]{1,9}")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,7})[ \t]*(?:;.*)?")


class NotConnected(Exception):
    """There is no connection, and no byte of a request has left."""


class _Garbage(Exception):
    """What came is not HTTP."""


# A frozen dataclass takes twice the time to make, and there is one per letter.
class Response(NamedTuple):
    """``headers`` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a service lives: plain HTTP is for this machine only."""

    host: str
    port: int
    secure: bool

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"

    @classmethod
    def parse(cls, url: str, setting: str) -> Endpoint:
        """``setting`` names the variable the URL came from, for the error."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as exc:
            raise BadInput(f"{setting} has value {url!r}: {exc}.") from exc
        extras = parts.username or parts.password or parts.path.strip("/") or parts.query or parts.fragment
        strange = extras or not re.fullmatch(r"[!-~]+", url)  # urlsplit drops line ends without a word
        if not host or strange or not re.fullmatch(r"[0-9a-z._:-]+", host):
            raise BadInput(
                f"{setting} has value {url!r}. It must look like https://host or https://host:port."
            )
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
            raise BadInput(
                f"{setting} has value {url!r}. It must begin with https:// (http:// is for 127.0.0.1)."
            )
        secure = parts.scheme == "https"
        return cls(host, port or (443 if secure else 80), secure)


def request_bytes(method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    head = f"{method} {path} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body


class _Head(NamedTuple):
    status: int
    headers: dict[str, str]
    keep_alive: bool
    length: int | None  # None: in chunks, or until the connection is closed
    chunked: bool


def _parse_head(raw: bytes) -> _Head:
    """RFC 9112, without its kindness to old peers: no folded lines, no bare line feeds."""
    first, *lines = raw.decode("latin-1").split("\r\n")
    status_line = _STATUS_LINE.fullmatch(first)
    if not status_line:
        raise _Garbage(f"the status line is {first[:60]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        header = _HEADER_LINE.fullmatch(line)
        if not header:
            raise _Garbage(f"a header line is {line[:60]!r}")
        name, value = header[1].lower(), header[2].strip(" \t")
        if name == "content-length" and headers.get(name, value) != value:
            raise _Garbage("there are two lengths")
        headers[name] = value
    status = int(status_line[2])
    length, chunked = _framing(status, headers)
    keep_alive = status_line[1] == "1" and headers.get("connection", "").lower() != "close"
    return _Head(status, headers, keep_alive, length, chunked)


def _framing(status: int, headers: Mapping[str, str]) -> tuple[int | None, bool]:
    length, coding = headers.get("content-length"), headers.get("transfer-encoding")
    if coding is not None:
        if length is not None or coding.lower() != "chunked":
            raise _Garbage(f"Transfer-Encoding is {coding[:40]!r}, Content-Length is {length!r}")
        return None, True
    if length is not None:
        if not _LENGTH.fullmatch(length) or int(length) > MAX_RESPONSE_BYTES:
            raise _Garbage(f"Content-Length is {length[:40]!r}")
        return int(length), False
    return (0 if status in (204, 304) else None), False


class _ResponseReader:
    """Takes bytes as they come and gives the response when it is whole."""

    def __init__(self) -> None:
        self._buffer = b""
        self._received = 0
        self._head: _Head | None = None
        self._chunks: list[bytes] = []

    def feed(self, data: bytes) -> Response | None:
        self._received += len(data)
        if self._received > MAX_RESPONSE_BYTES:
            raise _Garbage(f"the answer is longer than {MAX_RESPONSE_BYTES} bytes")
        self._buffer += data
        while self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return None
            head = _parse_head(self._buffer[:end])
            self._buffer = self._buffer[end + 4 :]
            if head.status >= 200:  # 1xx answers come before the real one
                self._head = head
        return self._whole(self._head)

    def finish(self) -> Response | None:
        """The connection was closed: that ends a body which has no other end."""
        head = self._head
        if head is None or head.length is not None or head.chunked:
            return None
        body, self._buffer = self._buffer, b""
        return Response(head.status, head.headers, body)

    @property
    def reusable(self) -> bool:
        """May another request follow on this connection? Not after bytes that nobody asked for."""
        return self._head is not None and self._head.keep_alive and not self._buffer

    def _whole(self, head: _Head) -> Response | None:
        if head.chunked:
            body = self._take_chunks()
        else:
            body = self._take_length(head.length)
        return None if body is None else Response(head.status, head.headers, body)

    def _take_length(self, length: int | None) -> bytes | None:
        if length is None or len(self._buffer) < length:
            return None
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return body

    def _take_chunks(self) -> bytes | None:
        while (line_end := self._buffer.find(b"\r\n")) >= 0:
            size_line = _CHUNK_SIZE.fullmatch(self._buffer[:line_end])
            if not size_line:
                raise _Garbage(f"a chunk begins with {self._buffer[:20]!r}")
            size, start = int(size_line[1], 16), line_end + 2
            if size == 0:
                return self._take_trailers(line_end)
            if len(self._buffer) < start + size + 2:
                return None
            if self._buffer[start + size : start + size + 2] != b"\r\n":
                raise _Garbage("a chunk is longer than it says")
            self._chunks.append(self._buffer[start : start + size])
            self._buffer = self._buffer[start + size + 2 :]
        return None

    def _take_trailers(self, last_line_end: int) -> bytes | None:
        end = self._buffer.find(b"\r\n\r\n", last_line_end)
        if end < 0:
            return None
        self._buffer = self._buffer[end + 4 :]
        return b"".join(self._chunks)


class Connection(asyncio.Protocol):
    """A keep-alive connection. Made by ``connect``; ``send`` when ``usable``; ``close`` in the end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._answered: Callable[[Response | NoAnswer], None] | None = None
        self._patience = 0.0
        self._alarm = Alarm(self._on_alarm)
        self._used = False

    @classmethod
    async def connect(cls, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> Connection:
        """Raises NotConnected."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                _, connection = await loop.create_connection(cls, endpoint.host, endpoint.port, ssl=tls)
        except TimeoutError as exc:
            raise NotConnected(f"{endpoint.host}:{endpoint.port} did not answer in {timeout:g} s") from exc
        except (OSError, UnicodeError) as exc:
            raise NotConnected(f"{endpoint.host}:{endpoint.port}: {exc}") from exc
        return connection

    def usable(self) -> bool:
        """May a request be written? False once the server hung up, even if the loop has not read that yet."""
        if self._closed.done() or self._transport.is_closing():
            return False
        if not self._used:
            return True
        return self._loop.time() - self._idle_since < IDLE_LIMIT_SECONDS and not self._poll.poll(0)

    def send(self, request: bytes, timeout: float, answered: Callable[[Response | NoAnswer], None]) -> None:
        """Write a whole request at once. ``answered`` is called once, and may send the next one."""
        self._answered = answered
        self._reader = _ResponseReader()
        self._used = True
        self._patience = timeout + len(request) / _UPLOAD_BYTES_PER_SECOND
        self._alarm.set(self._patience)
        self._transport.write(request)

    async def exchange(self, request: bytes, timeout: float) -> Response:
        """Send a request and wait for its answer. Raises NoAnswer; who stops waiting must close."""
        answer: asyncio.Future[Response | NoAnswer] = self._loop.create_future()
        self.send(request, timeout, lambda what: None if answer.done() else answer.set_result(what))
        what = await answer
        if isinstance(what, NoAnswer):
            raise what
        return what

    async def close(self) -> None:
        self._transport.abort()
        await self._closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # Whatever can be read from an idle connection is its end, or bytes that answer no question.
        self._poll = select.poll()
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if self._answered is None:
            self._transport.abort()
            return
        try:
            response = self._reader.feed(data)
        except _Garbage as exc:
            self._fail(f"the answer is not HTTP: {exc}")
            return
        if response is not None:
            self._succeed(response)

    def eof_received(self) -> None:
        response = self._reader.finish() if self._answered is not None else None
        if response is not None:
            self._succeed(response)
        else:
            self._fail("the server closed the connection before a whole answer")

    def connection_lost(self, exc: Exception | None) -> None:
        self._alarm.stop()
        self._fail(f"the connection was lost before a whole answer: {exc or 'closed'}")
        if not self._closed.done():
            self._closed.set_result(None)

    def _on_alarm(self) -> None:
        if self._answered is not None:
            self._fail(f"no answer in {self._patience:.3g} s")

    def _succeed(self, response: Response) -> None:
        self._idle_since = self._loop.time()
        # An answer may overtake the end of a long request; the rest of it must not be taken for the next one.
        if not self._reader.reusable or self._transport.get_write_buffer_size():
            self._transport.abort()
        self._answer(response)

    def _fail(self, reason: str) -> None:
        self._transport.abort()
        self._answer(NoAnswer(reason))

    def _answer(self, what: Response | NoAnswer) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(what)
