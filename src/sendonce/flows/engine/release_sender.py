"""Let a held sender go, on a person's word."""

from __future__ import annotations

from sendonce.domain.engine.senders import SenderHold
from sendonce.errors import RefusedByRule
from sendonce.ports.engine import SenderHolds


def release_sender(holds: SenderHolds, key: str, actor: str) -> SenderHold:
    """The hold that is over by it. Raises RefusedByRule for a sender that is not held."""
    hold = holds.get(key)
    if hold is None or not holds.release(key, actor):
        raise RefusedByRule(f"The sender {key} is not held: 'sendonce sender list' shows who is.")
    return hold
