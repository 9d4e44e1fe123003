"""POST /send-mailout and GET /mailouts/{id}."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from sendonce.entrypoints.http.access import bearer_tokens, is_among
from sendonce.entrypoints.http.answers import json_answer
from sendonce.entrypoints.http.bodies import read_body, read_object, read_short_body
from sendonce.entrypoints.http.service import Service
from sendonce.entrypoints.views import mailout_view, progress_view
from sendonce.errors import BadInput, NotFound
from sendonce.flows.mailouts.explain_progress import explain_progress
from sendonce.flows.mailouts.find_mailout import mailout_named, unknown_page
from sendonce.flows.mailouts.obey_page import PageWish, obey_page
from sendonce.flows.mailouts.start_mailout import (
    StartOrder,
    StartReport,
    page_mailout,
    start_mailout,
    try_unread_page,
)
from sendonce.ports.mailouts import PageInbox
from sendonce.wiring.messages import message_settings
from sendonce.wiring.senders import keys_of

_LONGEST_ID = 100
# A stranger's JSON is parsed on the event loop: of so much that takes a fraction of a millisecond.
_STRANGERS_BYTES = 4 * 1024
_TOKEN = re.compile(rb'"auth_token"\s{0,20}:\s{0,20}"([^"\\]{1,512})"')


class MailoutEndpoints:
    def __init__(self, service: Service, inbox: PageInbox) -> None:
        self._service = service
        self._inbox = inbox

    async def start(self, request: Request) -> Response:
        fields = await self._authorized_fields(request)
        if self._inbox.is_press(fields):
            return await self._service.in_thread(self._press, fields)
        wish = _wish(fields)
        if wish.dry_run:
            told = await self._service.in_thread(self._try, wish)
            return json_answer({"status": "dry_run", **told})
        report = await self._service.in_thread(self._start, wish)
        self._service.nudge()
        return json_answer({"status": report.status, **_told(report)})

    def _press(self, fields: dict[str, Any]) -> Response:
        """A button in Notion. It gets 200 and the state: Notion pauses a button that meets an error."""
        press = self._inbox.pressed(fields)
        service, settings = self._service, self._service.settings
        if not settings.notion_token:
            raise NotFound("Pages of Notion cannot be read here: set NOTION_TOKEN.")
        wish = PageWish("notion", press.page_id, press.event, press.is_test)
        letters = partial(message_settings, settings, self._service.store)
        done = obey_page(service.store, letters, service.tenant_id, settings.test_emails, wish)
        if done.started:
            service.nudge()
            return json_answer({"status": "sending", **_told(StartReport(done.mailout, done.planned))})
        told = {"status": str(done.mailout.status), "mailout_id": done.mailout.id, "already": True}
        return json_answer({**told, **({"reason": done.reason} if done.reason else {})})

    async def _authorized_fields(self, request: Request) -> dict[str, Any]:
        """The request, once a token in a header or in its body was right.

        With the secret in a header the body may be long. A stranger's is read if it is short, for the secret
        may be in it. Whatever is wrong, a stranger learns nothing but 401.
        """
        gate, secrets = self._service.gate, (self._service.settings.executor_shared_secret,)
        shown = bearer_tokens(request)
        if is_among(shown, secrets):
            return await self._service.in_thread(read_object, await read_body(request))
        body = await read_short_body(request, _STRANGERS_BYTES)
        if body is None:
            gate.turn_away(request)
        if gate.has_had_enough_of(request) and not is_among(_tokens_in(body), secrets):
            gate.turn_away(request)
        try:
            fields = read_object(body) if body else {}
        except BadInput:
            if shown:
                gate.turn_away(request)
            gate.note_failure(request)
            raise
        token = fields.get("auth_token")
        gate.let_in(request, [token] if isinstance(token, str) else [], secrets)
        return fields

    def _try(self, wish: _Wish) -> dict[str, Any]:
        """A page that has no mailout yet gets none from being tried."""
        store, tenant_id, settings = self._service.store, self._service.tenant_id, self._service.settings
        page = self._page_in(wish.mailout_id)
        if page is None or store.mailouts.of_page(tenant_id, "notion", page) is not None:
            return _told(self._start(wish))
        planned = try_unread_page(store, lambda: message_settings(settings, self._service.store), tenant_id)
        return {"mailout_id": page, "name": page, "planned": planned}

    def _start(self, wish: _Wish) -> StartReport:
        settings = self._service.settings
        order = StartOrder(
            self._mailout_of(wish.mailout_id),
            self._service.tenant_id,
            dry_run=wish.dry_run,
            test_emails=settings.test_emails if wish.is_test else None,
        )
        store, check = self._service.store, self._service.sender_check
        return start_mailout(store, lambda: message_settings(settings, store), order, check)

    def _mailout_of(self, name: str) -> str:
        """Our own id, or that of a page's mailout, which is made when the page is first named."""
        page = self._page_in(name)
        return page_mailout(self._service.store, self._service.tenant_id, "notion", page).id if page else name

    def _page_in(self, name: str) -> str | None:
        """The page of Notion that is meant; None where it is a mailout of ours, or Notion is not in use."""
        in_use = self._service.settings.notion_token
        return unknown_page(self._service.store, self._service.tenant_id, name) if in_use else None

    async def status(self, request: Request) -> Response:
        self._service.require_secret(request)
        return json_answer(await self._service.in_thread(self._status, request.path_params["mailout_id"]))

    def _status(self, mailout_id: str) -> dict[str, Any]:
        store = self._service.store
        mailout = mailout_named(store, self._service.tenant_id, mailout_id)
        if mailout is None:
            raise NotFound(f"There is no mailout {mailout_id[:_LONGEST_ID]!r}.")
        books = store.jobs.books(mailout.id)
        progress = explain_progress(store, mailout, books, keys_of(self._service.settings))
        return {**mailout_view(mailout, books), **progress_view(progress)}


def _tokens_in(body: bytes) -> list[str]:
    """What is shown in a body, found without parsing it: good enough for a peer that failed too often."""
    found = _TOKEN.findall(body)[:4]
    return [token.decode("utf-8", "replace") for token in found]


class _Wish(NamedTuple):
    mailout_id: str
    dry_run: bool = False
    is_test: bool = False


def _wish(fields: dict[str, Any]) -> _Wish:
    mailout_id = fields.get("mailout_id")
    if not isinstance(mailout_id, str) or not mailout_id or len(mailout_id) > _LONGEST_ID:
        raise BadInput("mailout_id must be the id of a mailout, as 'sendonce mailout list' shows it.")
    return _Wish(mailout_id, _flag(fields, "dry_run"), _flag(fields, "is_test"))


def _flag(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadInput(f"{name} must be true or false.")
    return bool(value)


def _told(report: StartReport) -> dict[str, Any]:
    told = {"mailout_id": report.mailout.id, "name": report.mailout.name, "planned": report.planned}
    return {**told, "send_at": report.waits_until.isoformat()} if report.waits_until else told
