"""Name the workers that nobody has heard of for a while and nobody can bury: a person has to look."""

from __future__ import annotations

import logging

from sendonce.ports.engine import SendingStore

log = logging.getLogger(__name__)


class RollCall:
    """Raises the alarm once for each worker that goes missing, and again if it goes missing again."""

    def __init__(self, store: SendingStore) -> None:
        self._store = store
        self._told: set[str] = set()

    def call(self) -> None:
        """Call after the burials: whoever is missing then is in another lock domain, or stopped."""
        now = self._store.ledger.now()
        missing = {worker.id: worker for worker in self._store.workers.open() if worker.is_missing(now)}
        for worker_id in missing.keys() - self._told:
            worker = missing[worker_id]
            facts = {"worker": worker.id, "name": worker.name, "host": worker.host, "seen": worker.seen_at}
            log.error(
                "a worker is missing: if you know that it is dead, run 'sendonce workers bury'",
                extra={"fields": facts},
            )
        self._told = set(missing)
