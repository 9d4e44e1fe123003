"""The unsubscribe link: GET by people, POST by their mail programs (RFC 8058), and the way back.

A good token and a known job, or the one page that says no: it tells nobody which of them was wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from sendonce.domain.tokens import read_token_of_any
from sendonce.entrypoints.http import pages
from sendonce.entrypoints.http.answers import answer
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.service import Service
from sendonce.errors import Unavailable
from sendonce.flows.unsubscribe import Recipient, look_up, undo_unsubscribe, unsubscribe
from sendonce.ports import Store
from sendonce.wiring import known_unsubscribe_secrets

log = logging.getLogger(__name__)

_Flow = Callable[[Store, str], Recipient | None]
_Page = Callable[[str, Recipient, str], str]


class UnsubscribeEndpoints:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._secrets = known_unsubscribe_secrets(service.settings)

    async def leave(self, request: Request) -> Response:
        """GET unsubscribes at once, or asks first; HEAD, which link checkers send, only looks.

        POST is the one click. Its body says List-Unsubscribe=One-Click, and the token all that matters:
        whatever a mail program sends along, its user wants to be left alone.
        """
        if request.method == "POST":
            await read_body(request)
        elif request.method == "HEAD" or self._service.settings.unsubscribe_confirm:
            return await self._carry_out(request, look_up, pages.question)
        return await self._carry_out(request, unsubscribe, pages.done)

    async def undo(self, request: Request) -> Response:
        await read_body(request)
        return await self._carry_out(request, undo_unsubscribe, pages.undone)

    async def _carry_out(self, request: Request, flow: _Flow, page: _Page) -> Response:
        language = self._language(request)
        token = request.query_params.get("token", "")
        job_id = read_token_of_any(token, self._secrets)
        recipient = None
        try:
            if job_id is not None:
                recipient = await self._service.in_writer(flow, self._service.store, job_id)
        except Unavailable as exc:
            log.error("unsubscribe link failed", extra={"fields": {"error": str(exc)}})
            return _html(pages.out_of_order(language), language, 503)
        if recipient is None:
            status = 404 if self._service.gate.tolerates(request) else 429
            return _html(pages.bad_link(language), language, status)
        return _html(page(language, recipient, token), language)

    def _language(self, request: Request) -> str:
        wanted = request.headers.get("accept-language", "")
        return self._service.settings.mail_language or pages.choose_language(wanted)


def _html(page: str, language: str, status: int = 200) -> Response:
    headers = {
        "Content-Language": language,
        "Content-Security-Policy": pages.CONTENT_SECURITY_POLICY,
        "Vary": "Accept-Language",
        "X-Robots-Tag": "noindex, nofollow",
    }
    return answer(page.encode("utf-8"), "text/html; charset=utf-8", status, headers)
