"""Remove a sender that was added."""

from __future__ import annotations

from sendonce.errors import RefusedByRule
from sendonce.ports.engine import Senders


def remove_sender(senders: Senders, sender_id: str, actor: str) -> None:
    """Its waiting letters stay as they are. Raises RefusedByRule where somebody else was faster."""
    if not senders.remove(sender_id, actor):
        raise RefusedByRule(f"The sender {sender_id} was removed already.")
