"""How uvicorn runs the service. What it leaves out matters more than what it sets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from sendonce.entrypoints.http.connections import ConnectionLimits
from sendonce.entrypoints.http.protocol import GuardedConfig
from sendonce.errors import Unavailable

# A server that does not let go of stuck connections could not be restarted.
_GRACE_SECONDS = 8


def server_config(
    app: ASGIApp, host: str, port: int, limits: ConnectionLimits | None = None
) -> uvicorn.Config:
    """One process on httptools and uvloop, within limits; logs go where the process's logs go.

    No access log: unsubscribe tokens stand in the query, and a log outlives the letters. No proxy
    headers: the peer's address serves only to slow down guessers, who could write what they like there.
    """
    return GuardedConfig(
        app,
        limits or ConnectionLimits(),
        host=host,
        port=port,
        loop="uvloop",
        ws="none",
        interface="asgi3",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def bound_socket(host: str, port: int) -> socket.socket:
    """The listening socket, or an error that says what to set."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        raise Unavailable(
            f"Cannot listen on {host} port {port}: {exc.strerror}. Set HOST or PORT to what is free."
        ) from exc
    return listener


def quiet_server(app: ASGIApp, limits: ConnectionLimits) -> uvicorn.Server:
    """A server that leaves signals to its owner: a worker beside it must drain before the process ends."""
    return _Quiet(server_config(app, "127.0.0.1", 0, limits))


class _Quiet(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
