"""Unsubscribe the recipient of a letter, and take it back. Each is asked for by the letter's own link."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.errors import BadInput
from sendonce.ports.people import PeopleStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whose letter it was, and why letters to that address are held back now, if they are.

    ``undoable``: this letter may take it back. The links of a test letter change nothing.
    """

    address: str
    letter_id: str | None = None
    held_back: SuppressionReason | None = None
    undoable: bool = False
    is_test: bool = False
    sender_id: str = OWN_SENDER

    @property
    def suppressed(self) -> bool:
        return self.held_back is not None


def look_up(store: PeopleStore, job_id: str) -> Recipient | None:
    """The recipient of a job; None for an unknown job. Changes nothing."""
    job = store.jobs.get(job_id)
    dispatch = store.dispatches.get(job.dispatch_id) if job else None
    if job is None or dispatch is None:
        return None
    letter_id = job.letter_id or dispatch.letter_id
    recipient = Recipient(job.recipient, letter_id, is_test=dispatch.is_test, sender_id=dispatch.sender_id)
    try:
        address = parse_address(job.recipient)
    except BadInput:  # an erased recipient has a hash in place of the address, and gets no letters
        return replace(recipient, held_back=SuppressionReason.MANUAL)
    found = store.suppressions.covers(job.tenant_id, address)
    if found is None:
        return recipient
    undoable = found.job_id == job_id and store.suppressions.undoable(job_id)
    return replace(recipient, held_back=found.reason, undoable=undoable)


def unsubscribe(store: PeopleStore, job_id: str) -> Recipient | None:
    """Suppress the recipient for the tenant that wrote; a repeat changes nothing. None: unknown job.

    A test letter goes to its author's own addresses, which must go on receiving tests: it only rehearses.
    """
    recipient = look_up(store, job_id)
    if recipient is None:
        return None
    if recipient.is_test:
        return replace(recipient, held_back=SuppressionReason.UNSUBSCRIBED, undoable=True)
    store.suppressions.unsubscribe(job_id)
    log.info("unsubscribed", extra={"fields": {"job": job_id}})
    return look_up(store, job_id)


def undo_unsubscribe(store: PeopleStore, job_id: str) -> Recipient | None:
    """Take an unsubscription back, if it came from this letter a short while ago; the answer tells."""
    recipient = look_up(store, job_id)
    if recipient is None:
        return None
    if recipient.is_test:
        return replace(recipient, held_back=None, undoable=False)
    store.suppressions.resubscribe(job_id)
    after = look_up(store, job_id)
    undone = after is not None and not after.suppressed
    log.info("undo of an unsubscription", extra={"fields": {"job": job_id, "undone": undone}})
    return after
