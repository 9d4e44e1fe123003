"""POST /webhooks/notion: the integration's own webhook. A page whose status became ready is started."""

from __future__ import annotations

import logging
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from sendonce.entrypoints.http.answers import error_answer, json_answer
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.service import Service
from sendonce.flows.mailouts.hear_page import hear_page
from sendonce.ports.mailouts import PageInbox
from sendonce.wiring.messages import message_settings

log = logging.getLogger(__name__)


class NotionWebhookEndpoint:
    def __init__(self, service: Service, inbox: PageInbox) -> None:
        self._service = service
        self._inbox = inbox

    async def post(self, request: Request) -> Response:
        body = await read_body(request)
        if self._inbox.is_signed(body, request.headers.get("x-notion-signature")):
            started = await self._service.in_outside_thread(self._hear, body)
            if started:
                self._service.nudge()
            return json_answer({"status": "sending" if started else "nothing to do"})
        if not self._inbox.has_token and await self._service.in_thread(self._inbox.keep_handshake, body):
            return json_answer({"status": "verification token kept"})
        if self._service.gate.tolerates(request):
            log.warning(
                "a post to /webhooks/notion was refused: it is not signed with NOTION_WEBHOOK_TOKEN, and no "
                "'sendonce notion await-webhook' is waiting for a new webhook"
            )
        return error_answer(401, "The signature is missing or wrong.")

    def _hear(self, body: bytes) -> bool:
        service, settings = self._service, self._service.settings
        letters = partial(message_settings, settings, service.store)
        testers = settings.test_emails
        return hear_page(service.store, self._inbox, letters, service.tenant_id, testers, body)
