"""Let a held sender go, on a person's word."""

from __future__ import annotations

from sendonce.domain.engine.senders import SenderHold, SenderKeys
from sendonce.errors import RefusedByRule
from sendonce.ports.engine import SenderHolds


def release_sender(holds: SenderHolds, keys: SenderKeys, actor: str) -> SenderHold:
    """The hold that is over by it; a sender that was away is at home then.

    Raises RefusedByRule for a sender that is not held in any region.
    """
    found = [hold for key in keys if key is not None and (hold := holds.get(key)) is not None]
    released = [hold for hold in found if holds.release(hold.key, actor)]
    if not released:
        raise RefusedByRule(f"The sender {keys.home} is not held: 'sendonce sender list' shows who is.")
    return released[0]
