"""HTTP/1.1 as uvicorn speaks it, with bounds: on size, on time, and on what a request may look like.

uvicorn's parser has none of its own: 100 MB of headers are 700 MB of memory to it, and a client may take
for ever over them. So what comes in is counted before the parser sees it, and shapes that two servers in a
row might read in two ways (request smuggling, RFC 9112 §11.2) are refused where the parser lets them pass.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from sendonce.entrypoints.http.connections import ConnectionLimits, OpenConnections, Phase, Wait

_MOST_PIPELINED = 8
# An answer that nobody reads fills so much memory of ours and of the kernel's, and no more. The kernel would
# take megabytes, and a reader of 50 KB/s would then look for a quarter of a minute as if he had stopped.
_UNREAD_BYTES = 16 * 1024
_SMALLEST_PIECE, _LARGEST_PIECE = 1024, 16 * 1024
_MOST_DROPPED_BYTES = 4 * 1024 * 1024

_WORDS = {
    400: "The request is not good HTTP.",
    408: "The request took too long to arrive.",
    414: "The address is too long.",
    431: "The header fields are too long.",
    501: "The transfer encoding is not supported.",
    505: "The HTTP version is not supported.",
}


class GuardedConfig(uvicorn.Config):
    """uvicorn's configuration, with what all connections of a server share."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits, **options: Any) -> None:
        self.limits = limits
        self.open_connections = OpenConnections(limits)
        super().__init__(app, http=GuardedProtocol, timeout_keep_alive=limits.idle_seconds, **options)


class _Refusal(Exception):
    """Raised in a callback of the parser, which then stops."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class GuardedProtocol(HttpToolsProtocol):
    def __init__(
        self,
        config: GuardedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._open = config.open_connections
        self._deaf = False
        """What still comes in is dropped: the connection is about to end."""
        self._dropped_bytes = 0
        self._head_bytes = 0
        self._fields = 0
        self._head_over = False
        self._client_is_to: Wait | None = None
        self._unread_since: float | None = None
        self._closing_since: float | None = None

    # -- the connection ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_UNREAD_BYTES)
        peer = transport.get_extra_info("socket")
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNREAD_BYTES)
        self._expect(Phase.HEAD)
        if not self._open.admit(self):
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.dismiss(self)
        self._unset_keepalive_if_required()  # its timer would keep all of this in memory
        super().connection_lost(exc)

    def wait(self, now: float) -> Wait | None:
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            return Wait(Phase.READ, self._closing_since)
        if self._unread_since is not None:
            return Wait(Phase.READ, self._unread_since)
        if self._client_is_to is not None and self.flow.read_paused:
            self._client_is_to = self._client_is_to._replace(since=now)  # it cannot: we do not listen
            return None
        return self._client_is_to

    def end(self, phase: Phase) -> None:
        if phase is Phase.HEAD and self._head_bytes and not self._deaf:
            self._refuse(408)
        else:
            self.drop()

    def drop(self) -> None:
        self.transport.abort()

    def pause_writing(self) -> None:
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    def _expect(self, phase: Phase) -> None:
        self._client_is_to = Wait(phase, self.loop.time())

    # -- what comes in -------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        start = 0
        while start < len(data) and not self._deaf:
            room = self._limits.head_bytes - self._head_bytes
            stop = start + min(max(room, _SMALLEST_PIECE), _LARGEST_PIECE)
            self._feed(data[start:stop])
            start = stop
        if start < len(data):
            self._dropped_bytes += len(data) - start
            if self._dropped_bytes > _MOST_DROPPED_BYTES:
                self.drop()

    def _feed(self, piece: bytes) -> None:
        """Counts all of it as head; ``on_body`` takes off what was body."""
        self._head_bytes += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            # The request is answered as any other. What follows it is in a protocol that we do not speak.
            self._deaf = True
            self.cycle.keep_alive = False
        except httptools.HttpParserError as exc:
            cause = exc.__context__
            self._refuse(cause.status if isinstance(cause, _Refusal) else 400)
        else:
            if self._head_bytes > self._limits.head_bytes:
                self._refuse(431 if self.headers or self._head_over else 414)

    def _refuse(self, status: int) -> None:
        """Say why, unless an answer is on its way already, and listen no more.

        The socket stays open until the client hangs up or its time is over: closing it on unread bytes
        would take the answer away from a client that is still sending.
        """
        self._deaf = True
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            return
        self._expect(Phase.READ)
        if self._is_answering():
            self.drop()
            return
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        text = f'{{"error": "{_WORDS[status]}"}}'.encode()
        head = (
            b"content-type: application/json\r\ncache-control: no-store\r\n"
            b"x-content-type-options: nosniff\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(text)
        )
        self.flow.resume_reading()
        self.transport.write(STATUS_LINE[status] + head + text)
        self.transport.write_eof()

    def _is_answering(self) -> bool:
        begun = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        return begun or bool(self.pipeline)

    # -- what the parser finds -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _MOST_PIPELINED:
            raise _Refusal(400)
        self._unset_keepalive_if_required()
        if self._client_is_to is None or self._client_is_to.phase is not Phase.HEAD:
            self._expect(Phase.HEAD)
        self._fields = 0
        self._head_over = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += 1
        if self._fields > self._limits.head_fields:
            raise _Refusal(431)
        # A trailer comes after the request was judged by its headers, and must not pass for one of them.
        if not self._head_over:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_over = True
        version = self.parser.get_http_version()
        if version not in ("1.0", "1.1"):
            raise _Refusal(505)
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and version == "1.1"):  # RFC 9112 §3.2
            raise _Refusal(400)
        encodings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if encodings and version == "1.0":  # RFC 9112 §6.1: its framing is to be thought faulty
            raise _Refusal(400)
        if encodings and encodings != [b"chunked"]:
            raise _Refusal(501)
        self._expect(Phase.BODY)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = max(self._head_bytes - len(body), 0)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._client_is_to = None
        super().on_message_complete()
        if self.cycle.response_complete:
            self._expect(Phase.IDLE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._client_is_to is None and self.cycle.response_complete:
            self._expect(Phase.IDLE)
