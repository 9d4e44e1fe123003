"""Make a draft ready to be sent. Nothing is sent yet."""

from __future__ import annotations

from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.flows.mailouts.require_change import require_change
from sendonce.ports.mailouts import MailoutStore


def make_ready(store: MailoutStore, mailout: Mailout) -> None:
    """Raises RefusedByRule for what is no draft."""
    require_change(store, mailout, store.mailouts.make_ready(mailout.id), "it cannot be made ready")
