"""Puts the endpoints together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.http.answers import error_answer
from sendonce.entrypoints.http.assets import AssetEndpoint
from sendonce.entrypoints.http.letter_page import LetterPageEndpoint
from sendonce.entrypoints.http.links import LinkReader
from sendonce.entrypoints.http.mailouts import MailoutEndpoints
from sendonce.entrypoints.http.notion import NotionWebhookEndpoint
from sendonce.entrypoints.http.operations import OperationEndpoints
from sendonce.entrypoints.http.service import Service
from sendonce.entrypoints.http.ses_events import SesEventEndpoint, attend_to_events
from sendonce.entrypoints.http.signing_up import SignUpEndpoints
from sendonce.entrypoints.http.unsubscribing import UnsubscribeEndpoints
from sendonce.errors import SendonceError
from sendonce.ports.engine import ReadableMeter
from sendonce.ports.store import Store
from sendonce.settings import Settings
from sendonce.wiring.notion_inbox import notion_inbox

log = logging.getLogger(__name__)

_TRY_AGAIN = {503: "Something that this service needs does not answer. Try again later."}


def create_app(
    settings: Settings,
    store: Store,
    metrics: ReadableMeter,
    *,
    nudge: Callable[[], None] = lambda: None,
    tick: Callable[[float], Awaitable[dict[str, Any]]] | None = None,
    tenant_id: TenantId = DEFAULT_TENANT,
) -> Starlette:
    """The service over an open store, which the caller closes after the service has stopped.

    ``nudge`` is called when a mailout was started, so that a worker in this process need not wait for its
    next look; ``tick`` does due work for so many seconds and tells what it did. Who shows the secret sees
    what belongs to ``tenant_id`` and nothing else.
    """
    service = Service(settings, store, metrics, nudge, tick, tenant_id)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        attending = asyncio.create_task(attend_to_events(service))
        try:
            yield
        finally:
            attending.cancel()
            await asyncio.gather(attending, return_exceptions=True)
            service.close()

    app = Starlette(
        routes=_routes(service),
        lifespan=lifespan,
        exception_handlers={
            HTTPException: _http_error,
            SendonceError: _own_error,
            Exception: _unexpected_error,
        },
    )
    app.router.redirect_slashes = False  # RFC 8058 forbids redirects, and Host may be a stranger's word
    return app


def _routes(service: Service) -> list[Route]:
    """In the order of their traffic: Starlette tries one after the other."""
    events = SesEventEndpoint(service)
    links = LinkReader(service)
    leave = UnsubscribeEndpoints(service, links)
    sign_up = SignUpEndpoints(service, links)
    letter = LetterPageEndpoint(service, links)
    inbox = notion_inbox(service.settings)
    service.at_close.append(inbox.close)
    mailouts = MailoutEndpoints(service, inbox)
    operations = OperationEndpoints(service)
    assets = AssetEndpoint(service)
    notion = NotionWebhookEndpoint(service, inbox)
    return [
        Route("/ses-events", events.post, methods=["POST"]),
        Route("/unsubscribe", leave.leave, methods=["GET", "POST"]),
        Route("/unsubscribe/undo", leave.undo, methods=["POST"]),
        Route("/subscribe", sign_up.subscribe, methods=["POST"]),
        Route("/confirm", sign_up.confirm, methods=["GET", "POST"]),
        Route("/send-mailout", mailouts.start, methods=["POST"]),
        Route("/mailouts/{mailout_id}", mailouts.status, methods=["GET"]),
        Route("/assets/{sha256}", assets.get, methods=["GET"]),
        Route("/letter", letter.get, methods=["GET"]),
        Route("/webhooks/notion", notion.post, methods=["POST"]),
        Route("/tick", operations.tick, methods=["GET", "POST"]),
        Route("/healthz", operations.healthz, methods=["GET"]),
        Route("/readyz", operations.readyz, methods=["GET"]),
        Route("/metrics", operations.metrics, methods=["GET"]),
        Route("/openapi.json", operations.openapi, methods=["GET"]),
    ]


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_answer(error.status_code, error.detail, dict(error.headers or {}))


async def _own_error(request: Request, error: Exception) -> Response:
    """Our errors are fit to be shown to a user, but what failed on our side is for the log alone."""
    assert isinstance(error, SendonceError)
    if error.http_status < 500:
        return error_answer(error.http_status, str(error))
    log.error("request failed", extra={"fields": {"path": request.url.path, "error": str(error)}})
    return error_answer(error.http_status, _TRY_AGAIN.get(error.http_status, "internal error"))


async def _unexpected_error(_request: Request, _error: Exception) -> Response:
    """Starlette raises it again after this answer, and uvicorn writes it to the log."""
    return error_answer(500, "internal error")
