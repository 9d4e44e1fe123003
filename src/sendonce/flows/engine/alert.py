"""Alerts: tell the people in charge what is wrong, once an hour for each thing, whoever notices.

They wait in the outbox and are told together, a message a minute at the most. Both limits are leases in the
database, so they hold across processes and restarts.
"""

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
from sendonce.errors import Unavailable
from sendonce.ports.engine import WatchStore

log = logging.getLogger(__name__)

TOPIC = "alert"
KIND = "alert"
NOT_AGAIN_WITHIN = timedelta(hours=1)
TOLD_EVERY = timedelta(minutes=1)
_AT_ONCE = 20
_TELLING = "alerts"


class Messenger(Protocol):
    def tell(self, text: str) -> None:
        """Raises Unavailable."""


def raise_alert(store: WatchStore, about: str, text: str) -> bool:
    """Have it told; False where the same was told within the hour."""
    if not store.leases.take(f"alert/{about}", uuid4().hex, NOT_AGAIN_WITHIN):
        return False
    tell_later(store, about, text)
    return True


def tell_later(store: WatchStore, about: str, text: str) -> None:
    store.outbox.put(TOPIC, {"about": about, "text": text})
    log.warning("an alert was raised", extra={"fields": {"about": about, "text": text}})


def tell_alerts(
    store: WatchStore, tenant_id: TenantId, messenger: Messenger | None, addresses: Sequence[str]
) -> int:
    """Tell what waits, as one message; how many alerts were told.

    With neither a messenger nor addresses there is nobody to tell: then they are done, too. Raises
    Unavailable where nobody could be told; they are told later.
    """
    waiting = store.outbox.due(TOPIC, _AT_ONCE)
    holder = uuid4().hex
    if not waiting or not store.leases.take(_TELLING, holder, TOLD_EVERY):
        return 0
    text = "\n\n".join(body["text"] for _, body in waiting)
    try:
        _tell(messenger, text, someone_else=bool(addresses))
    except Unavailable:
        store.leases.leave(_TELLING, holder)
        raise
    if addresses:
        _write(store, tenant_id, waiting[0][0], text, addresses)
    for entry_id, _ in waiting:
        store.outbox.done(entry_id)
    return len(waiting)


def _tell(messenger: Messenger | None, text: str, *, someone_else: bool) -> None:
    """A messenger that is away keeps nobody else from being told."""
    if messenger is None:
        return
    try:
        messenger.tell(text)
    except Unavailable as exc:
        if not someone_else:
            raise
        log.warning("an alert goes by e-mail only", extra={"fields": {"error": str(exc)}})


def _write(
    store: WatchStore, tenant_id: TenantId, entry_id: str, text: str, addresses: Sequence[str]
) -> None:
    """From the environment's own sender; people in charge want it, whatever they unsubscribed from."""
    subject = f"sendonce: {text.splitlines()[0][:80]}"
    letter = Letter(subject, "", f"<p>{escape(text)}</p>", text, text_only=True)
    letter_id = store.letters.put(tenant_id, letter)
    dispatch = store.dispatches.open(tenant_id, NewDispatch(KIND, entry_id, letter_id, asked_for=True))
    store.dispatches.plan(dispatch.id, [NewJob(parse_address(address)) for address in addresses])
    store.dispatches.run(dispatch.id)
