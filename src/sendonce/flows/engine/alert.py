"""Alerts: tell the people in charge what stopped by itself, once an hour for each thing, whoever notices."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from html import escape
from typing import Protocol
from uuid import uuid4

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import TenantId
from sendonce.ports.engine import WatchStore

log = logging.getLogger(__name__)

TOPIC = "alert"
KIND = "alert"
NOT_AGAIN_WITHIN = timedelta(hours=1)
_AT_ONCE = 5


class Messenger(Protocol):
    def tell(self, text: str) -> None:
        """Raises Unavailable."""


def raise_alert(store: WatchStore, about: str, text: str) -> bool:
    """Have it told; False where the same was told within the hour."""
    if not store.leases.take(f"alert/{about}", uuid4().hex, NOT_AGAIN_WITHIN):
        return False
    store.outbox.put(TOPIC, {"about": about, "text": text})
    log.warning("an alert was raised", extra={"fields": {"about": about, "text": text}})
    return True


def tell_alerts(
    store: WatchStore, tenant_id: TenantId, messenger: Messenger | None, addresses: Sequence[str]
) -> int:
    """Tell what waits, a few at a time; how many were told. What cannot be told now is told later."""
    told = 0
    for entry_id, body in store.outbox.due(TOPIC, _AT_ONCE):
        if messenger is not None:
            messenger.tell(body["text"])
        if addresses:
            _write(store, tenant_id, entry_id, body["text"], addresses)
        store.outbox.done(entry_id)
        told += 1
    return told


def _write(
    store: WatchStore, tenant_id: TenantId, entry_id: str, text: str, addresses: Sequence[str]
) -> None:
    """From the environment's own sender; people in charge want it, whatever they unsubscribed from."""
    letter = Letter(f"sendonce: {text[:80]}", "", f"<p>{escape(text)}</p>", text, text_only=True)
    letter_id = store.letters.put(tenant_id, letter)
    dispatch = store.dispatches.open(tenant_id, NewDispatch(KIND, entry_id, letter_id, asked_for=True))
    store.dispatches.plan(dispatch.id, [NewJob(parse_address(address)) for address in addresses])
    store.dispatches.run(dispatch.id)
