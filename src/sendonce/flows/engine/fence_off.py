"""Fence off letters that were signed too long ago: whoever holds them cannot send them any more."""

from __future__ import annotations

import logging

from sendonce.domain.engine.workers import SILENT_AFTER
from sendonce.errors import RefusedByRule
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.ports.engine import SendingStore
from sendonce.ports.mortality import Expiry

log = logging.getLogger(__name__)


async def fence_off(store: SendingStore, expiry: Expiry) -> int:
    """How many letters are in doubt by it; then workers without a lock that own none are over.

    The provider is asked only where something is old enough by the store's clock.
    """
    fenced = 0
    if await to_daemon_thread(_has_old_claims, store, expiry):
        signed_before = await expiry.passed()
        proof = f"the signature expired at the provider by {signed_before + expiry.window:%Y-%m-%d %H:%M:%S}Z"
        fenced = await to_daemon_thread(store.ledger.fence, expiry.transport, signed_before, proof)
    if fenced:
        log.warning("fenced off by the signature window", extra={"fields": {"jobs": fenced}})
    await to_daemon_thread(_end_the_silent, store, expiry)
    return fenced


def _has_old_claims(store: SendingStore, expiry: Expiry) -> bool:
    oldest = store.ledger.oldest_claim()
    return oldest is not None and store.ledger.now() - oldest >= expiry.window


def _end_the_silent(store: SendingStore, expiry: Expiry) -> None:
    """Of a worker that holds no lock, silence is all that is ever heard. It may be over, for its letters are
    settled: if it lives all the same, its next claim is refused, and it comes again as a new one."""
    unseen = [w for w in store.workers.open() if not w.has_lock and w.transport == expiry.transport]
    if not unseen:
        return
    now, patience = store.ledger.now(), max(expiry.window, SILENT_AFTER)
    for worker in unseen:
        if worker.is_silent_for(patience, now):
            _end(store, worker.id, f"silent for {patience}, and it holds no letter")


def _end(store: SendingStore, worker_id: str, why: str) -> None:
    try:
        store.workers.end(worker_id, why)
    except RefusedByRule:
        return  # it holds letters whose signatures are still good
    log.warning("a worker without a lock is over", extra={"fields": {"worker": worker_id, "why": why}})
