"""Move a sender to its second region and back, on a person's word."""

from __future__ import annotations

from datetime import timedelta

from sendonce.domain.engine.senders import SenderHold, SenderKeys, is_away
from sendonce.errors import BadInput, RefusedByRule
from sendonce.ports.engine import EngineStore


def fail_over(
    store: EngineStore, keys: SenderKeys, reason: str, lasting: timedelta | None, actor: str
) -> SenderHold:
    """Its letters leave through its second region from now on; ``lasting`` None: until it is called back.

    Raises RefusedByRule for a sender without a second region, and for one that a person or a brake holds.
    """
    if not reason.strip() or not reason.isprintable():
        raise BadInput("reason: it must be one line of text that says why the sender moves.")
    if keys.second is None:
        raise RefusedByRule(
            f"The sender {keys.home} has no second region. Give it one: --second-region of 'sendonce sender "
            "add', or SES_SECOND_REGION for this installation's own."
        )
    held = store.sender_holds.get(keys.home)
    if held is not None and held.until_released and not held.elsewhere:
        raise RefusedByRule(
            f"The sender {keys.home} is held until it is released: {held.reason} "
            f"To let it go: sendonce sender release {keys.home}"
        )
    until = store.ledger.now() + lasting if lasting is not None else None
    return store.sender_holds.hold_by_hand(keys.home, reason.strip(), until, actor, elsewhere=True)


def fail_back(store: EngineStore, keys: SenderKeys, actor: str) -> SenderHold:
    """Its letters leave through its own region again; why they did not. Raises RefusedByRule if they do."""
    away = is_away(keys, store.sender_holds.get)
    if away is None or not store.sender_holds.release(keys.home, actor):
        raise RefusedByRule(f"The sender {keys.home} is in its own region already.")
    return away
