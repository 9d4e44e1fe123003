"""Say how a mailout gets on, and why nothing moves, in the same words at every door."""

from __future__ import annotations

from sendonce.domain.engine.jobs import Books
from sendonce.domain.engine.senders import hold_in_force
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus
from sendonce.domain.mailouts.progress import Progress, Sight, explain
from sendonce.flows.engine.show_senders import KeysOf
from sendonce.ports.mailouts import MailoutStore


def explain_progress(store: MailoutStore, mailout: Mailout, books: Books, keys_of: KeysOf) -> Progress:
    """How a mailout with these books gets on. ``keys_of`` tells what a provider knows its sender by.

    It reads a handful of rows, whatever the size of the mailout.
    """
    sending = mailout.status == MailoutStatus.SENDING
    sender = store.senders.get(mailout.sender_id) if sending and mailout.sender_id else None
    gone = bool(mailout.sender_id) and (sender is None or sender.removed_at is not None)
    seen = Sight(
        mailout=mailout,
        books=books,
        now=store.ledger.now(),
        halted=store.ledger.identity().halted if sending else None,
        hold=hold_in_force(keys_of(sender), store.sender_holds.get) if sending and not gone else None,
        lost_sender=(sender.address if sender else mailout.sender_id) if sending and gone else None,
        workers=store.workers.open(),
        next_due=store.jobs.next_due(mailout.id) if sending else None,
        sharing=store.mailouts.running() if sending else 0,
    )
    return explain(seen)
