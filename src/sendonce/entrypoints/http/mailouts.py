"""POST /send-mailout and GET /mailouts/{id}."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sendonce.entrypoints.http.access import bearer_tokens, is_among
from sendonce.entrypoints.http.answers import json_answer
from sendonce.entrypoints.http.bodies import read_body, read_object
from sendonce.entrypoints.http.service import Service
from sendonce.entrypoints.views import mailout_view
from sendonce.errors import BadInput, NotFound
from sendonce.flows.start_mailout import StartOrder, StartReport, start_mailout
from sendonce.wiring import message_settings

_LONGEST_ID = 100


class MailoutEndpoints:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def start(self, request: Request) -> Response:
        body = await read_body(request)
        fields = self._authorized_fields(request, body)
        order = _order(fields)
        report = await self._service.in_thread(self._start, order)
        if order.dry_run:
            return json_answer({"status": "dry_run", **_told(report)})
        self._service.nudge()
        return json_answer({"status": "sending", **_told(report)})

    def _authorized_fields(self, request: Request, body: bytes) -> dict[str, Any]:
        """The request, once a token in a header or in it was right.

        A wrong token in a header is told before the body is looked at, unless the body has the right one.
        """
        shown = bearer_tokens(request)
        secrets = (self._service.settings.executor_shared_secret,)
        if is_among(shown, secrets):
            return read_object(body)
        try:
            fields = read_object(body) if body else {}
        except BadInput:
            if shown:
                self._service.gate.let_in(request, shown, secrets)
            raise
        token = fields.get("auth_token")
        self._service.gate.let_in(request, [token] if isinstance(token, str) else [], secrets)
        return fields

    def _start(self, order: StartOrder) -> StartReport:
        settings = self._service.settings
        return start_mailout(self._service.store, lambda: message_settings(settings), order)

    async def status(self, request: Request) -> Response:
        self._service.require_secret(request)
        return json_answer(await self._service.in_thread(self._status, request.path_params["mailout_id"]))

    def _status(self, mailout_id: str) -> dict[str, Any]:
        mailout = self._service.store.mailouts.get(mailout_id)
        if mailout is None:
            raise NotFound(f"There is no mailout {mailout_id[:_LONGEST_ID]!r}.")
        return mailout_view(mailout, self._service.store.jobs.books(mailout_id))


def _order(fields: dict[str, Any]) -> StartOrder:
    mailout_id = fields.get("mailout_id")
    if not isinstance(mailout_id, str) or not mailout_id or len(mailout_id) > _LONGEST_ID:
        raise BadInput("mailout_id must be the id of a mailout, as 'sendonce mailout list' shows it.")
    is_test, dry_run = _flag(fields, "is_test"), _flag(fields, "dry_run")
    if is_test:
        raise BadInput(
            "is_test: test letters are sent from the command line, "
            f"with 'sendonce mailout test {mailout_id}'."
        )
    return StartOrder(mailout_id, dry_run=dry_run)


def _flag(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadInput(f"{name} must be true or false.")
    return bool(value)


def _told(report: StartReport) -> dict[str, Any]:
    return {"mailout_id": report.mailout.id, "name": report.mailout.name, "planned": report.planned}
