"""Say why a mailout could not be changed, by the state that it has now."""

from __future__ import annotations

from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.domain.mailouts.status_words import status_words
from sendonce.errors import RefusedByRule
from sendonce.ports.mailouts import MailoutStore


def require_change(store: MailoutStore, mailout: Mailout, changed: bool, why_not: str) -> None:
    """Raises RefusedByRule unless the store ``changed`` it."""
    if not changed:
        now = store.mailouts.get(mailout.tenant_id, mailout.id) or mailout
        raise RefusedByRule(f"Mailout {mailout.id} is {status_words(now)}: {why_not}.")
