"""The HTTP service on Vercel: an ASGI app that owns no disk and sleeps between requests.

Two things are different from ``sendonce serve``. Nothing runs beside the requests, because an instance is
frozen as soon as it has answered: a cron calls /tick, which works for a bounded time. And nothing on the
disk outlives an instance, so no lock can prove a worker's death there. SES has a proof of its own, its
signature window, so letters may leave from here through SES and in no other way.

An instance that sleeps cannot say that it listened without a break, so pushed events prove no absence here:
doubt that no event ends is parked. A queue (SES_EVENTS_QUEUE_URL) keeps events while everybody sleeps.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Receive, Scope, Send

from sendonce.entrypoints.http.answers import error_answer
from sendonce.entrypoints.logs import configure_logging
from sendonce.errors import BadSetting, SendonceError
from sendonce.settings import Settings, load_settings

if TYPE_CHECKING:
    from sendonce.ports.store import Store

log = logging.getLogger(__name__)

# vercel.json gives a request 120 s. A tick needs some of them to start, and 8 s to let go of the wire.
LONGEST_TICK = 50.0
# A frozen instance wakes with connections that the database has closed meanwhile.
_STALE_SECONDS = 20.0

_NOT_SET_UP = "The service is not set up: its log says what is missing."


def fit_for_vercel(given: Settings) -> Settings:
    """The settings as they can hold there, or BadSetting with everything that cannot."""
    problems = []
    if given.database_url.startswith("sqlite"):
        problems.append(
            "DATABASE_URL is an SQLite file, and on Vercel no file outlives its instance: letters would be "
            "forgotten and sent again. Set it to PostgreSQL, e.g. Supabase: Connect, Transaction pooler."
        )
    if given.transport != "ses":
        problems.append(
            f"TRANSPORT is {given.transport}, and on Vercel only ses can prove that a letter of a lost "
            "instance can no longer leave. Set SES_FROM_EMAIL and TRANSPORT=ses, or run sendonce elsewhere."
        )
    if not given.cron_secret:
        problems.append(
            "CRON_SECRET is not set, so Vercel's cron is turned away at /tick and no letter leaves. "
            "Make one: openssl rand -hex 32."
        )
    if given.aws_access_key_id.startswith("ASIA"):
        problems.append(
            "AWS_ACCESS_KEY_ID is a temporary key, like the ones without any rights that Vercel puts into "
            "the environment. Set the AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of an IAM user."
        )
    if problems:
        raise BadSetting("\n".join(problems))
    state = Path(tempfile.gettempdir()) / "sendonce"
    # A lasting key has no session token; what stands in the environment is Vercel's own.
    return replace(given, state_dir=state, death_proof="signature", aws_session_token="")


async def tick(settings: Settings, store: Store, seconds: float) -> int:
    """How many letters were settled. Nobody looks after doubt between two ticks, so each stays for it.

    Each tick is a worker with a name of its own, because the ticks of two requests may overlap.
    """
    from sendonce.flows.engine.tick import has_doubts
    from sendonce.flows.engine.tick import tick as work_for
    from sendonce.wiring.metrics import no_metrics
    from sendonce.wiring.worker import make_worker

    worker = make_worker(settings, store, no_metrics(), name=f"vercel-{uuid.uuid4()}")
    return await work_for(worker, min(seconds, LONGEST_TICK), doubts=lambda: has_doubts(store, "ses"))


class VercelApp:
    """Opens the service at the first request, and again at the next one if the database was away."""

    def __init__(self, load: Callable[[], Settings] = load_settings) -> None:
        self._load = load
        self._opening = threading.Lock()
        self._service: ASGIApp | None = None
        self._store: Store | None = None
        self._requests = 0
        self._idle_since = time.time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self._requests += 1
            try:
                service = await asyncio.to_thread(self._awake)
                await service(scope, receive, send)
            except BadSetting as exc:
                log.error("not set up for Vercel", extra={"fields": {"error": str(exc)}})
                await error_answer(503, _NOT_SET_UP)(scope, receive, send)
            except SendonceError as exc:
                log.error("the service could not be opened", extra={"fields": {"error": str(exc)}})
                await error_answer(503, "The database does not answer.")(scope, receive, send)
            finally:
                self._requests -= 1
                self._idle_since = time.time()

    async def _live(self, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        if self._store is not None:
            self._store.close()
        await send({"type": "lifespan.shutdown.complete"})

    def _awake(self) -> ASGIApp:
        from sendonce.wiring.stores import renew_connections

        with self._opening:
            if self._service is None:
                self._service = self._open()
            elif self._requests == 1 and time.time() - self._idle_since > _STALE_SECONDS:
                assert self._store is not None
                renew_connections(self._store)
            return self._service

    def _open(self) -> ASGIApp:
        from sendonce.entrypoints.http import create_app
        from sendonce.wiring.metrics import make_metrics
        from sendonce.wiring.stores import open_store

        configure_logging(fmt="json")
        given = self._load()
        configure_logging(given.log_level, "json", None, given.secrets(), colours=False)
        settings = fit_for_vercel(given)
        store = self._store = open_store(settings)

        async def tick_for(seconds: float) -> dict[str, Any]:
            return {"settled": await tick(settings, store, seconds)}

        return create_app(settings, store, make_metrics(store), tick=tick_for)


app = VercelApp()
