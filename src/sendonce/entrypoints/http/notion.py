"""POST /webhooks/notion: the integration's own webhook. A page whose status says "send" is started."""

from __future__ import annotations

import logging
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from sendonce.adapters.notion.handshake import HandshakeWindow
from sendonce.adapters.notion.pages import read_letter
from sendonce.adapters.notion.webhooks import is_signed, read_event, read_handshake
from sendonce.domain.mailouts import MailoutStatus
from sendonce.entrypoints.http.answers import error_answer, json_answer
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.service import Service
from sendonce.errors import NotFound, Refused
from sendonce.flows.start_mailout import StartOrder, page_mailout, start_mailout
from sendonce.wiring import message_settings, notion_client, notion_names

log = logging.getLogger(__name__)


class NotionWebhookEndpoint:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def post(self, request: Request) -> Response:
        body = await read_body(request)
        token = self._service.settings.notion_webhook_token
        if is_signed(body, request.headers.get("x-notion-signature"), token):
            started = await self._service.in_thread(self._take, body)
            if started:
                self._service.nudge()
            return json_answer({"status": "sending" if started else "nothing to do"})
        if not token and await self._service.in_thread(self._keep_handshake, body):
            return json_answer({"status": "verification token kept"})
        if self._service.gate.tolerates(request):
            log.warning(
                "a post to /webhooks/notion was refused: it is not signed with NOTION_WEBHOOK_TOKEN, and no "
                "'sendonce notion await-webhook' is waiting for a new webhook"
            )
        return error_answer(401, "The signature is missing or wrong.")

    def _keep_handshake(self, body: bytes) -> bool:
        """Notion shows its token only by posting it. It goes to a file of the owner's, not to the log."""
        window = HandshakeWindow(self._service.settings.state_dir)
        if not window.is_open():
            return False
        handshake = read_handshake(body)
        return handshake is not None and window.take(handshake.verification_token)

    def _take(self, body: bytes) -> bool:
        """Look at the page that changed; True if a mailout was started by it."""
        event = read_event(body)
        settings = self._service.settings
        if event.entity_type != "page" or event.by_bots_only or not settings.notion_letters_id:
            return False
        with suppress(NotFound, Refused):
            page = read_letter(notion_client(settings), event.entity_id, notion_names(settings)[0])
            if page.status == MailoutStatus.READY and page.belongs_to(settings.notion_letters_id):
                tenant_id = self._service.tenant_id
                mailout = page_mailout(self._service.store, tenant_id, "notion", page.id)
                order = StartOrder(mailout.id, tenant_id)
                start_mailout(self._service.store, lambda: message_settings(settings), order)
                return True
        return False
