"""Unsubscribe the recipient of a letter, and take it back. Each is asked for by the letter's own link."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sendonce.domain.addresses import parse_address
from sendonce.errors import BadInput
from sendonce.ports import Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whose letter it was, and whether letters to that address are held back now."""

    address: str
    suppressed: bool


def look_up(store: Store, job_id: str) -> Recipient | None:
    """The recipient of a job; None for an unknown job. Changes nothing."""
    job = store.jobs.get(job_id)
    if job is None:
        return None
    try:
        address = parse_address(job.recipient)
    except BadInput:  # an erased recipient has a hash in place of the address, and gets no letters
        return Recipient(job.recipient, suppressed=True)
    return Recipient(job.recipient, store.suppressions.covers(job.tenant_id, address) is not None)


def unsubscribe(store: Store, job_id: str) -> Recipient | None:
    """Suppress the recipient for the tenant that wrote; a repeat changes nothing. None: unknown job."""
    address = store.suppressions.unsubscribe(job_id)
    if address is None:
        return None
    log.info("unsubscribed", extra={"fields": {"job": job_id}})
    return Recipient(address, suppressed=True)


def undo_unsubscribe(store: Store, job_id: str) -> Recipient | None:
    """Take an unsubscription back. A bounce or a complaint still suppresses, and the answer says so."""
    if store.suppressions.resubscribe(job_id) is None:
        return None
    log.info("unsubscription undone", extra={"fields": {"job": job_id}})
    return look_up(store, job_id)
