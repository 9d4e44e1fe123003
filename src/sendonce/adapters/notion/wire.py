"""One HTTP exchange at a time with Notion, over a connection that is kept. Bounded in time and size."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from sendonce.adapters.web.deadlines import Deadline, TimedSocket, connect, in_time, look_up, secure
from sendonce.adapters.web.exchanges import NoAnswer
from sendonce.domain.engine.hosts import is_loopback
from sendonce.errors import BadInput

# 100 blocks, each of up to 100 pieces of 2,000 characters: a long page of a letter is far below this.
MAX_ANSWER = 32 * 1024 * 1024
# A server may close an idle connection; after so long it is not worth trying.
_MAX_IDLE = 30.0


class NotSent(Exception):
    """The request did not leave: Notion cannot have carried it out."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    retry_after: float | None
    body: bytes


@dataclass(frozen=True, slots=True)
class ApiAddress:
    host: str
    port: int
    prefix: str
    secure: bool
    loopback: bool


def read_api_address(api_url: str) -> ApiAddress:
    """The parts of NOTION_API_URL. Plain http would show the token to everybody on the way."""
    try:
        parts = urlsplit(api_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    loopback = is_loopback(host)
    if not host or parts.scheme not in ("http", "https") or (parts.scheme == "http" and not loopback):
        raise BadInput(
            f"NOTION_API_URL is {api_url!r}: give an https:// address, or http:// on this machine. "
            "Leave it unset for https://api.notion.com."
        )
    secure = parts.scheme == "https"
    return ApiAddress(host, port or (443 if secure else 80), parts.path.rstrip("/"), secure, loopback)


class Wire:
    """Not for several threads at once: the client takes turns."""

    def __init__(self, address: ApiAddress, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._tls = (tls or ssl.create_default_context()) if address.secure else None
        self._connection: http.client.HTTPConnection | None = None
        self._socket: TimedSocket | None = None
        self._idle_since = 0.0

    def exchange(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        *,
        fresh: bool,
        deadline: Deadline,
    ) -> Answer:
        """Ask once. ``fresh`` takes a new connection, so that a lost reply is never just a stale one."""
        reused = self._connection is not None
        if reused and (fresh or time.monotonic() - self._idle_since > _MAX_IDLE):
            self.close()
            reused = False
        connection = self._connected(deadline)
        try:
            connection.request(method, self._address.prefix + path, body, headers)
            answer = self._read(connection)
        except (OSError, http.client.HTTPException) as exc:
            self.close()
            if reused and not isinstance(exc, TimeoutError):
                return self.exchange(method, path, headers, body, fresh=True, deadline=deadline)
            raise NoAnswer(f"{type(exc).__name__}: {exc}"[:200]) from exc
        except BaseException:
            self.close()
            raise
        self._idle_since = time.monotonic()
        return answer

    def _connected(self, deadline: Deadline) -> http.client.HTTPConnection:
        if self._connection is None or self._socket is None:
            it = self._address
            try:
                self._socket = self._open(deadline)
            except (OSError, ValueError) as exc:  # ValueError: a host name that IDNA refuses
                raise NotSent(f"{it.host}:{it.port}: {exc}"[:200]) from exc
            self._connection = http.client.HTTPConnection(it.host, it.port)
            self._connection.default_port = 443 if it.secure else 80  # what the Host header need not name
            self._connection.auto_open = 0
            self._connection.sock = self._socket
        self._socket.deadline = deadline
        return self._connection

    def _open(self, deadline: Deadline) -> TimedSocket:
        it = self._address
        addresses = in_time(deadline, lambda: look_up(it.host, it.port))
        wire = connect(addresses, it.port, deadline)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return TimedSocket(secure(wire, self._tls, it.host, deadline) if self._tls else wire, deadline)
        except BaseException:
            wire.close()
            raise

    def _read(self, connection: http.client.HTTPConnection) -> Answer:
        with connection.getresponse() as response:
            pieces: list[bytes] = []
            size = 0
            while piece := response.read1(1 << 16):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_ANSWER:
                    raise http.client.HTTPException(f"an answer of more than {MAX_ANSWER} bytes")
            if response.length:  # read1 does not complain about a body that ends early
                raise http.client.IncompleteRead(b"", response.length)
            closes = response.will_close
            retry_after = _seconds(response.headers.get("Retry-After"))
        if closes:
            self.close()
        return Answer(response.status, retry_after, b"".join(pieces))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _seconds(text: str | None) -> float | None:
    """Retry-After. Notion gives whole seconds, never a date."""
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 7 else None
