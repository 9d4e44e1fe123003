"""How uvicorn runs the service. What it leaves out matters more than what it sets."""

from __future__ import annotations

import uvicorn
from starlette.types import ASGIApp

# A server that does not let go of stuck connections could not be restarted.
_GRACE_SECONDS = 8


def server_config(app: ASGIApp, host: str, port: int) -> uvicorn.Config:
    """One process on httptools and uvloop; logs go where the process's logs go.

    No access log: unsubscribe tokens stand in the query, and a log outlives the letters. No proxy
    headers: the peer's address serves only to slow down guessers, who could write what they like there.
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        interface="asgi3",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,  # longer than a load balancer's 60 s, so that it is the one to hang up
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
