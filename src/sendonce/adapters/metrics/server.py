"""``GET /metrics`` for a worker that has no HTTP service."""

from __future__ import annotations

import hmac
import logging
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sendonce.errors import BadSetting

if TYPE_CHECKING:
    from sendonce.ports.engine import ReadableMeter

logger = logging.getLogger(__name__)

# A scraper asks every few seconds; more open connections than this are no scraper's.
_MOST_CONNECTIONS = 8
_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.1  # how soon close() is noticed


def serve_metrics(
    metrics: ReadableMeter, port: int, host: str = "127.0.0.1", token: str = ""
) -> MetricsServer:
    """Serve ``GET /metrics`` from a thread of its own, for a worker that has no HTTP service.

    With a token only ``Authorization: Bearer …`` is answered. Without one it is for this machine alone,
    whatever ``host`` says. Port 0 takes a free one.
    """
    if not token:
        host = "127.0.0.1"
    try:
        return MetricsServer(metrics, port, host, token)
    except OSError as exc:
        raise BadSetting(
            f"METRICS_PORT is {port}: {host} cannot be listened on there ({exc.strerror})."
            " Set it to a free port, e.g., METRICS_PORT=9464, or to 0 for none."
        ) from exc


class MetricsServer:
    """A running server; ``close`` or leaving the ``with`` block ends it."""

    def __init__(self, metrics: ReadableMeter, port: int, host: str, token: str) -> None:
        self._server = _Server((host, port), _handler(metrics, token))
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """Turns away connections beyond a handful, so that a flood costs the worker nothing."""

    daemon_threads = False  # close() waits for them; a client has five seconds
    block_on_close = True
    request_queue_size = 32

    def __init__(self, *args: Any) -> None:
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A client that hung up is no news; the standard one prints a traceback."""
        logger.debug("metrics client failed", exc_info=True)


def _handler(metrics: ReadableMeter, token: str) -> type[BaseHTTPRequestHandler]:
    expected = f"Bearer {token}".encode()

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_SECONDS
        server_version, sys_version = "sendonce", ""

        def do_GET(self) -> None:
            shown = self.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if token and not hmac.compare_digest(shown, expected):
                self._answer(401, b"unauthorized\n", "text/plain")
            elif self.path.partition("?")[0] != "/metrics":
                self._answer(404, b"not found\n", "text/plain")
            else:
                self._answer(200, metrics.render(), metrics.content_type)

        def _answer(self, status: int, body: bytes, content_type: str) -> None:
            with suppress(ConnectionError, TimeoutError):
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
