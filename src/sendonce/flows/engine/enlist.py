"""A worker signs on before it claims, and off when it has nothing left in its hands."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass

from sendonce.domain.engine.workers import WorkerRecord
from sendonce.errors import RefusedByRule, Unavailable
from sendonce.ports.engine import SendingStore
from sendonce.ports.mortality import Life, Mortality

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Enlistment:
    """A worker's row in the ledger, and its life where others can see it."""

    worker_id: str
    name: str
    transport: str
    route: str
    sender_id: str
    store: SendingStore
    mortality: Mortality

    def sign_on(self, slots: int) -> Life:
        """The journal, with room for so many letters. Others may bury the worker from now on."""
        adoption = self.store.ledger.identity().adoptions
        journal = self.mortality.enlist(self.name, self.worker_id, slots, adoption)
        record = WorkerRecord(
            id=self.worker_id,
            name=self.name,
            transport=self.transport,
            route=self.route,
            sender_id=self.sender_id,
            lock_domain=self.mortality.lock_domain,
            lock_file=journal.lock_file,
            inode=journal.inode,
            boot_id=self.mortality.boot_id(),
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        try:
            self.store.workers.register(record)
        except BaseException:
            journal.close(settled=True)
            raise
        return journal

    def sign_off(self, journal: Life) -> None:
        """If the ledger cannot be told, the file stays and the next worker buries this one."""
        settled = False
        try:
            self.store.workers.end(self.worker_id, "left")
            highest = max(journal.highest_claim, self.store.ledger.identity().claim_seq)
            self.mortality.keep_claim(highest, journal.count)
            settled = True
        except (Unavailable, RefusedByRule) as exc:
            log.error("the worker could not sign off", extra={"fields": {"error": str(exc)}})
        finally:
            journal.close(settled=settled)
