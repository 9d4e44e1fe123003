"""Cancel a mailout for good: what is not sent yet is skipped."""

from __future__ import annotations

from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.flows.mailouts.require_change import require_change
from sendonce.ports.mailouts import MailoutStore

CHUNK = 5_000


def cancel_mailout(store: MailoutStore, mailout: Mailout) -> None:
    """Raises RefusedByRule for a mailout that is over. If this process dies on the way, a worker goes on."""
    require_change(store, mailout, store.dispatches.cancel(mailout.id), "it cannot be cancelled")
    while store.dispatches.cancel_chunk(mailout.id, CHUNK):
        pass
    store.dispatches.complete(mailout.id)
