"""POST /webhooks/notion: the integration's own webhook. A page whose status became ready is started."""

from __future__ import annotations

import logging
from functools import cached_property, partial

from starlette.requests import Request
from starlette.responses import Response

from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.handshake import HandshakeWindow, WebhookDiary
from sendonce.adapters.notion.pace import Policy
from sendonce.adapters.notion.pages import read_letter
from sendonce.adapters.notion.webhooks import is_signed, read_event, read_handshake
from sendonce.domain.mailouts.mailouts import MailoutStatus, PageEvent
from sendonce.entrypoints.http.answers import error_answer, json_answer
from sendonce.entrypoints.http.bodies import read_body
from sendonce.entrypoints.http.service import Service
from sendonce.errors import NotFound
from sendonce.flows.mailouts.obey_page import PageWish, obey_page, tell_page_of_test_mark
from sendonce.wiring.messages import message_settings
from sendonce.wiring.notion import notion_client, notion_names

log = logging.getLogger(__name__)

# Whoever posts waits for the answer. Where Notion is slow, it gets 503 and comes again.
QUICK = Policy(tries=2, first_pause=0.2, patience=5.0, request_seconds=5.0)
# Other events, such as a change of the text, are nobody's word to send.
_TOLD_BY = ("page.properties_updated", "page.created")


class NotionWebhookEndpoint:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._diary = WebhookDiary(service.settings.state_dir)

    async def post(self, request: Request) -> Response:
        body = await read_body(request)
        token = self._service.settings.notion_webhook_token
        if is_signed(body, request.headers.get("x-notion-signature"), token):
            started = await self._service.in_outside_thread(self._take, body)
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
        self._diary.note(self._service.settings.notion_webhook_token)
        event, settings = read_event(body), self._service.settings
        if event.type not in _TOLD_BY or event.by_bots_only or not settings.notion_letters_id:
            return False
        try:
            page = read_letter(self._client, event.entity_id, notion_names(settings)[0])
        except NotFound:
            return False
        if page.status != MailoutStatus.READY or not page.belongs_to(settings.notion_letters_id):
            return False
        wish = PageWish("notion", page.id, PageEvent(event.id, event.at), page.is_test)
        if event.changed is None or page.status_property in event.changed:
            return self._obey(wish)
        if page.test_property in event.changed:
            tell_page_of_test_mark(self._service.store, self._service.tenant_id, wish)
        return False

    def _obey(self, wish: PageWish) -> bool:
        service, settings = self._service, self._service.settings
        letters = partial(message_settings, settings, service.store)
        return obey_page(service.store, letters, service.tenant_id, settings.test_emails, wish).started

    @cached_property
    def _client(self) -> NotionClient:
        """One for all requests: they share its connection, and the pace at which Notion may be asked."""
        client = notion_client(self._service.settings, QUICK)
        self._service.at_close.append(client.close)
        return client
