"""The unsubscribe link: GET by people, POST by their mail programs (RFC 8058), and the way back.

A good token and a known job, or the one page that says no: it tells nobody which of them was wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.entrypoints.http import pages
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.links import LinkReader
from sendonce.entrypoints.http.page_frame import language_for, page_answer
from sendonce.entrypoints.http.service import Service
from sendonce.errors import Unavailable
from sendonce.flows.people.unsubscribe import Recipient, look_up, undo_unsubscribe, unsubscribe
from sendonce.ports.store import Store

log = logging.getLogger(__name__)

_MOST_SENDERS = 1_000

_Flow = Callable[[Store, str], Recipient | None]
_Page = Callable[[pages.Visit], str]


class UnsubscribeEndpoints:
    def __init__(self, service: Service, links: LinkReader) -> None:
        self._service = service
        self._links = links
        self._senders: dict[tuple[str | None, str], str] = {}

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
        language = language_for(request, self._service.settings.mail_language)
        token = request.query_params.get("token", "")
        found = None
        try:
            job_id = await self._links.job_of(token)
            if job_id is not None:
                found = await self._service.in_writer(self._visited, flow, job_id)
        except Unavailable as exc:
            log.error("unsubscribe link failed", extra={"fields": {"error": str(exc)}})
            return page_answer(pages.out_of_order(language), language, 503)
        if found is None:
            status = 404 if self._service.gate.tolerates(request) else 429
            return page_answer(pages.bad_link(language), language, status)
        recipient, sender = found
        return page_answer(page(pages.Visit(language, recipient, sender, token)), language)

    def _visited(self, flow: _Flow, job_id: str) -> tuple[Recipient, str] | None:
        recipient = flow(self._service.store, job_id)
        return None if recipient is None else (recipient, self._sender_of(recipient))

    def _sender_of(self, recipient: Recipient) -> str:
        """Whose letters they are, as the reader knows them. A letter that was sent does not change."""
        settings = self._service.settings
        if settings.list_name:
            return settings.list_name
        named = (recipient.letter_id, recipient.sender_id)
        if named not in self._senders:
            if len(self._senders) >= _MOST_SENDERS:
                self._senders.clear()
            self._senders[named] = self._name_in(recipient.letter_id) or self._usual(recipient.sender_id)
        return self._senders[named]

    def _name_in(self, letter_id: str | None) -> str | None:
        letter = self._service.store.letters.get(letter_id) if letter_id is not None else None
        return letter.from_name if letter else None

    def _usual(self, sender_id: str) -> str:
        """The sender's name, or the domain of its address."""
        added = self._service.store.senders.get(sender_id) if sender_id != OWN_SENDER else None
        if added is not None:
            return added.made.name or added.address.rpartition("@")[2]
        settings = self._service.settings
        return settings.sender_name or settings.sender.rpartition("@")[2]
