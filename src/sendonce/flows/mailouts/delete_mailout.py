"""Delete a mailout that was never sent, and its letter."""

from __future__ import annotations

from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.flows.mailouts.require_change import require_change
from sendonce.ports.mailouts import MailoutStore


def delete_mailout(store: MailoutStore, mailout: Mailout) -> None:
    """Raises RefusedByRule for one that was started: it is part of the books."""
    why_not = "what was sent stays in the books. 'mailout cancel' ends it"
    require_change(store, mailout, store.mailouts.delete(mailout.id), why_not)
