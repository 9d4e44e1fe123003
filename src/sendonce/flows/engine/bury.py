"""Bury dead workers: what they had claimed is settled by what their journals say."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.jobs import Settlement
from sendonce.domain.engine.outcomes import Deferred, InDoubt
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.errors import LedgerRolledBack, RefusedByRule
from sendonce.ports.engine import JobRef, SendingStore
from sendonce.ports.mortality import Graveyard, Wired, WireLog

log = logging.getLogger(__name__)


def bury_the_dead(
    store: SendingStore, graveyard: Graveyard, retry_after: float, own_id: str | None = None
) -> list[WorkerRecord]:
    """Bury every worker whose death this process can prove. The others are left alone, however old.

    Letters that the provider had put off are due again after ``retry_after`` seconds.
    """
    buried = []
    for worker in store.workers.open():
        if worker.id != own_id and bury_if_dead(store, graveyard, worker, retry_after):
            buried.append(worker)
    return buried


def bury_if_dead(store: SendingStore, graveyard: Graveyard, worker: WorkerRecord, retry_after: float) -> bool:
    """Whether its death was proven, and it was buried."""
    try:
        with graveyard.open_if_dead(worker) as wire_log:
            if wire_log is not None:
                _bury(store, worker, wire_log, retry_after)
            return wire_log is not None
    except LedgerRolledBack:
        raise
    except RefusedByRule as exc:
        # The dead worker's last claim was committed after we looked: the next round sees it.
        log.warning("not buried yet", extra={"fields": {"worker": worker.name, "why": str(exc)}})
        return False


def _bury(store: SendingStore, worker: WorkerRecord, wire_log: WireLog, retry_after: float) -> None:
    failpoint("bury-before")
    proof = f"worker {worker.name} (pid {worker.pid}) is dead: {wire_log.proof}"
    refs = store.ledger.sending_of(worker.id)
    whole = _knows_the_last_claims(store, worker, wire_log)
    settlements = [_settlement(ref, wire_log, whole, proof, retry_after) for ref in refs]
    store.ledger.turn(settlements, None)
    failpoint("bury-after")
    store.workers.end(worker.id, proof)
    log.warning("buried a dead worker", extra={"fields": {"proof": proof, **_count(settlements, proof)}})


def _knows_the_last_claims(store: SendingStore, worker: WorkerRecord, wire_log: WireLog) -> bool:
    """A journal may have gone back too: a snapshot or a backup of the state directory was put in its place.

    A claim is counted there after its commit, and nothing of it is sent before. So the last may be missing.
    """
    counted = store.workers.claims_of([worker.id]).get(worker.id, 0)
    return wire_log.claims >= counted - 1


def _settlement(ref: JobRef, wire_log: WireLog, whole: bool, proof: str, retry_after: float) -> Settlement:
    """A letter that a journal does not know never left, if the journal is ``whole``."""
    job_id, attempt = ref
    match wire_log.verdict(job_id, attempt):
        case Wired.NEVER if whole:
            never_left = Deferred("never_left", proof, retry_after=0.0, throttle=True)
            return Settlement(job_id, attempt, never_left)
        case Wired.NEVER | Wired.MAYBE:
            return Settlement(job_id, attempt, InDoubt(proof), death_proof=proof)
        case Deferred() as deferred:
            return Settlement(job_id, attempt, deferred, retry_after=retry_after)
        case outcome:
            return Settlement(job_id, attempt, outcome, death_proof=proof)


def _count(settlements: Sequence[Settlement], proof: str) -> dict[str, int]:
    """Doubts that the death itself has caused, and the rest: what the journal tells."""
    doubts = sum(s.outcome == InDoubt(proof) for s in settlements)
    return {"settled": len(settlements) - doubts, "in_doubt": doubts}
