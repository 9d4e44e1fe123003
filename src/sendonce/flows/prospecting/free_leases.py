"""Let others take at once what a dead process of the pipeline had in its hands."""

from __future__ import annotations

import logging

from sendonce.ports.prospecting import ProspectingStore

log = logging.getLogger(__name__)


def free_leases(store: ProspectingStore, dead: str) -> None:
    """Whoever calls it knows that the process is dead."""
    now = store.ledger.now()
    freed = store.tasks.release(dead, now) + store.search_operations.release(dead, now)
    if freed:
        log.info("a dead process had work", extra={"fields": {"worker": dead, "freed": freed}})
