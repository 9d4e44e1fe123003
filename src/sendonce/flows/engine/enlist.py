"""A worker signs on before it claims, and off when it has nothing left in its hands."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sendonce.domain.engine.workers import ClaimCount, WorkerRecord
from sendonce.errors import RefusedByRule, Unavailable
from sendonce.flows.engine.check_ledger import ClaimWitness
from sendonce.ports.engine import Graveyard, Journal, SendingStore

log = logging.getLogger(__name__)


class OwnJournal(Journal, Protocol):
    path: Path
    inode: int
    highest_claim: int
    count: ClaimCount

    def close(self, *, settled: bool) -> None: ...


class StateKeeper(Graveyard, ClaimWitness, Protocol):
    """The state directory of this machine."""

    def enlist(self, name: str, worker_id: str, slots: int, adoption: int) -> OwnJournal: ...

    def sweep(self, name: str, known: set[str]) -> None: ...

    def keep_claim(self, claim_seq: int, count: ClaimCount | None) -> None: ...

    def boot_id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Enlistment:
    """A worker's row in the ledger and its journal in the state directory."""

    worker_id: str
    name: str
    transport: str
    route: str
    sender_id: str
    store: SendingStore
    state: StateKeeper

    def sign_on(self, slots: int) -> OwnJournal:
        """The journal, with room for so many letters. Others may bury the worker from now on."""
        adoption = self.store.ledger.identity().adoptions
        journal = self.state.enlist(self.name, self.worker_id, slots, adoption)
        record = WorkerRecord(
            id=self.worker_id,
            name=self.name,
            transport=self.transport,
            route=self.route,
            sender_id=self.sender_id,
            lock_domain=self.state.lock_domain,
            lock_file=journal.path.name,
            inode=journal.inode,
            boot_id=self.state.boot_id(),
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        try:
            self.store.workers.register(record)
        except BaseException:
            journal.close(settled=True)
            raise
        return journal

    def sign_off(self, journal: OwnJournal) -> None:
        """If the ledger cannot be told, the file stays and the next worker buries this one."""
        settled = False
        try:
            self.store.workers.end(self.worker_id, "left")
            highest = max(journal.highest_claim, self.store.ledger.identity().claim_seq)
            self.state.keep_claim(highest, journal.count)
            settled = True
        except (Unavailable, RefusedByRule) as exc:
            log.error("the worker could not sign off", extra={"fields": {"error": str(exc)}})
        finally:
            journal.close(settled=settled)
