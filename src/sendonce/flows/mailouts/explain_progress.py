"""Say how a mailout gets on, and why nothing moves, in the same words at every door."""

from __future__ import annotations

from sendonce.domain.engine.jobs import Books
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus
from sendonce.domain.mailouts.progress import Progress, Sight, explain
from sendonce.ports.mailouts import MailoutStore


def explain_progress(store: MailoutStore, mailout: Mailout, books: Books, sender_key: str) -> Progress:
    """How a mailout with these books gets on. ``sender_key`` names the sender that its letters leave from.

    It reads a handful of rows, whatever the size of the mailout.
    """
    sending = mailout.status == MailoutStatus.SENDING
    seen = Sight(
        mailout=mailout,
        books=books,
        now=store.ledger.now(),
        halted=store.ledger.identity().halted if sending else None,
        hold=store.sender_holds.get(sender_key) if sending else None,
        workers=store.workers.open(),
        next_due=store.jobs.next_due(mailout.id) if sending else None,
        sharing=store.mailouts.running() if sending else 0,
    )
    return explain(seen)
