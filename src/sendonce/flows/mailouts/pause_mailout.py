"""Pause a mailout: no more letters are handed out, and those on the wire finish."""

from __future__ import annotations

from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.flows.mailouts.require_change import require_change
from sendonce.ports.mailouts import MailoutStore


def pause_mailout(store: MailoutStore, mailout: Mailout) -> None:
    """Raises RefusedByRule for a mailout that is not being sent."""
    require_change(store, mailout, store.dispatches.set_paused(mailout.id, True), "it cannot be paused")
