"""What Notion posts to us, read into what its pages ask for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sendonce.adapters.notion.client import NotionClient
from sendonce.adapters.notion.handshake import HandshakeWindow, WebhookDiary
from sendonce.adapters.notion.names import TableNames
from sendonce.adapters.notion.pages import letter_of, read_letter
from sendonce.adapters.notion.webhooks import (
    is_button_press,
    is_signed,
    read_button_press,
    read_event,
    read_handshake,
)
from sendonce.domain.mailouts.mailouts import PageEvent
from sendonce.domain.mailouts.page_calls import PageNews, PagePress, PageSight
from sendonce.errors import NotFound

# Other events, such as a change of the text, are nobody's word to send.
_ASKED_BY = ("page.properties_updated", "page.created")


class NotionInbox:
    """ports.PageInbox. ``table_id`` is «Письма»; without one no page asks.

    ``connect`` makes the client when a page is first looked at. All requests share it, and with it the pace
    at which Notion may be asked.
    """

    def __init__(
        self,
        connect: Callable[[], NotionClient],
        names: TableNames,
        table_id: str,
        token: str,
        state_dir: Path,
    ) -> None:
        self._connect = connect
        self._names = names
        self._table_id = table_id
        self._token = token
        self._window = HandshakeWindow(state_dir)
        self._diary = WebhookDiary(state_dir)
        self._client: NotionClient | None = None
        self._connecting = threading.Lock()

    @property
    def has_token(self) -> bool:
        return bool(self._token)

    def is_signed(self, body: bytes, signature: str | None) -> bool:
        return is_signed(body, signature, self._token)

    def keep_handshake(self, body: bytes) -> bool:
        """Notion shows its token only by posting it. It goes to a file of the owner's, not to the log."""
        if not self._window.is_open():
            return False
        handshake = read_handshake(body)
        return handshake is not None and self._window.take(handshake.verification_token)

    def read(self, body: bytes) -> PageNews:
        self._diary.note(self._token)
        event = read_event(body)
        may_ask = event.type in _ASKED_BY and not event.by_bots_only and bool(self._table_id)
        return PageNews(event.entity_id, PageEvent(event.id, event.at), may_ask, event.changed)

    def look(self, news: PageNews) -> PageSight | None:
        try:
            page = read_letter(self._own_client(), news.page_id, self._names)
        except NotFound:
            return None
        if not page.belongs_to(self._table_id):
            return None
        return PageSight(
            page.id,
            page.status,
            page.is_test,
            status_changed=news.changed is None or page.status_property in news.changed,
            test_mark_changed=news.changed is not None and page.test_property in news.changed,
        )

    def is_press(self, fields: Mapping[str, Any]) -> bool:
        return is_button_press(fields)

    def pressed(self, fields: Mapping[str, Any]) -> PagePress:
        press = read_button_press(fields)
        event = PageEvent(press.event_id) if press.event_id else None
        return PagePress(press.page_id, letter_of(press.page, self._names).is_test, event)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _own_client(self) -> NotionClient:
        with self._connecting:
            if self._client is None:
                self._client = self._connect()
            return self._client
