"""POST /subscribe and /confirm: double opt-in, if SIGN_UP is on.

The answer is the same whatever the address is. Nothing but a press of the button confirms: mail scanners
open every link of a letter.
"""

from __future__ import annotations

import logging
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sendonce.domain.engine.letters import confirm_url
from sendonce.domain.engine.tokens import CONFIRM
from sendonce.domain.people.confirmation_letters import usual_wording
from sendonce.domain.people.sign_ups import SignUpWish
from sendonce.entrypoints.http import sign_up_pages
from sendonce.entrypoints.http.access import FailureLimit, peer_of
from sendonce.entrypoints.http.answers import json_answer
from sendonce.entrypoints.http.bodies import read_body, read_object, read_short_body
from sendonce.entrypoints.http.links import LinkReader
from sendonce.entrypoints.http.page_frame import language_for, page_answer
from sendonce.entrypoints.http.service import Service
from sendonce.errors import BadInput, Unavailable
from sendonce.flows.people.sign_up import SignUpDesk, confirm_sign_up, read_wish
from sendonce.wiring.messages import message_settings

log = logging.getLogger(__name__)

_MOST_BYTES = 4 * 1024
_LONGEST_SOURCE = 200


class SignUpEndpoints:
    def __init__(self, service: Service, links: LinkReader) -> None:
        self._service = service
        self._links = links
        self._limit = FailureLimit()
        self._desk: SignUpDesk | None = None

    async def subscribe(self, request: Request) -> Response:
        """202 whatever the address: a form tells nobody who is on the list."""
        if not self._service.settings.sign_up:
            raise HTTPException(404, "Signing up is not open here.")
        if not self._limit.spend(peer_of(request)):
            raise HTTPException(429, "Too many sign-ups from this address.", {"Retry-After": "60"})
        body = await read_short_body(request, _MOST_BYTES)
        if body is None:
            raise HTTPException(413, f"The body is longer than {_MOST_BYTES} bytes.")
        # Not by its Content-Type: curl calls everything a form.
        is_form = not body.lstrip().startswith((b"{", b"["))
        language = language_for(request, self._service.settings.mail_language)
        wish = self._wish(request, language, _fields_of_form(body) if is_form else read_object(body))
        if await self._service.in_writer(self._take, wish, language):
            self._service.nudge()
        if is_form:
            return page_answer(sign_up_pages.look_into_your_mailbox(language), language, 202)
        return json_answer({"status": "accepted"}, 202)

    async def confirm(self, request: Request) -> Response:
        """GET and HEAD ask; POST confirms."""
        language = language_for(request, self._service.settings.mail_language)
        token = request.query_params.get("token", "")
        try:
            sign_up_id = None
            if self._service.settings.sign_up:
                sign_up_id = await self._links.job_of(token, CONFIRM)
            if sign_up_id is not None and request.method != "POST":
                return page_answer(sign_up_pages.question(language, self._sender(), token), language)
            if request.method == "POST":
                await read_body(request)
            found = None
            if sign_up_id is not None:
                found = await self._service.in_writer(confirm_sign_up, self._service.store, sign_up_id)
        except Unavailable as exc:
            log.error("a sign-up was not confirmed", extra={"fields": {"error": str(exc)}})
            return page_answer(sign_up_pages.out_of_order(language), language, 503)
        if found is None:
            status = 404 if self._service.gate.tolerates(request) else 429
            return page_answer(sign_up_pages.bad_link(language), language, status)
        return page_answer(sign_up_pages.answered(language, self._sender(), found), language)

    def _wish(self, request: Request, language: str, given: dict[str, object]) -> SignUpWish:
        page = request.headers.get("origin") or request.headers.get("referer") or ""
        parts = urlsplit(page)
        where = f"{parts.scheme}://{parts.netloc}{parts.path}" if parts.netloc else "a form"
        source = "".join(char for char in where if char.isprintable())[:_LONGEST_SOURCE]
        wording = self._service.settings.sign_up_wording or usual_wording(language, self._sender())
        return read_wish(given.get("email"), given.get("name"), source, wording)

    def _take(self, wish: SignUpWish, language: str) -> bool:
        if self._desk is None:
            messages = message_settings(self._service.settings, self._service.store)
            self._desk = SignUpDesk(
                self._service.store,
                self._service.tenant_id,
                self._sender(),
                lambda sign_up_id: confirm_url(messages.base_url, sign_up_id, messages.unsubscribe_secret),
            )
        return self._desk.take(wish, language)

    def _sender(self) -> str:
        settings = self._service.settings
        return settings.list_name or settings.sender_name or settings.sender.rpartition("@")[2]


def _fields_of_form(body: bytes) -> dict[str, object]:
    try:
        given = parse_qs(body.decode("utf-8"), max_num_fields=20, strict_parsing=bool(body))
    except ValueError as exc:
        raise BadInput("The form cannot be read: send email=… and, if you like, name=….") from exc
    return {name: values[0] for name, values in given.items()}
