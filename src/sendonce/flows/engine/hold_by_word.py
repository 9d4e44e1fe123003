"""Hold a sender on a person's word: its letters wait, and nobody else's."""

from __future__ import annotations

from datetime import timedelta

from sendonce.domain.engine.senders import SenderHold
from sendonce.errors import BadInput
from sendonce.ports.engine import EngineStore


def hold_by_word(
    store: EngineStore, key: str, reason: str, lasting: timedelta | None, actor: str
) -> SenderHold:
    """``lasting`` None holds it until it is released."""
    if not reason.strip() or not reason.isprintable():
        raise BadInput("reason: it must be one line of text that says why the sender is held.")
    until = store.ledger.now() + lasting if lasting is not None else None
    return store.sender_holds.hold_by_hand(key, reason.strip(), until, actor)
