"""Bury dead workers: what they had claimed is settled by what their journals say."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sendonce.domain.failpoints import failpoint
from sendonce.domain.jobs import Settlement
from sendonce.domain.outcomes import Deferred, InDoubt
from sendonce.domain.workers import WorkerRecord
from sendonce.ports import Graveyard, JobRef, Store, Wired, WireLog

log = logging.getLogger(__name__)

RETRY_AFTER_DEATH = 60.0


def bury_the_dead(store: Store, graveyard: Graveyard, own_id: str | None = None) -> list[WorkerRecord]:
    """Bury every worker whose death this process can prove. The others are left alone, however old."""
    buried = []
    for worker in store.workers.open():
        if worker.id == own_id:
            continue
        with graveyard.open_if_dead(worker) as wire_log:
            if wire_log is not None:
                _bury(store, worker, wire_log)
                buried.append(worker)
    return buried


def _bury(store: Store, worker: WorkerRecord, wire_log: WireLog) -> None:
    failpoint("bury-before")
    proof = f"worker {worker.name} (pid {worker.pid}) is dead: {wire_log.proof}"
    settlements = [_settlement(ref, wire_log, proof) for ref in store.ledger.sending_of(worker.id)]
    store.ledger.turn(settlements, None)
    failpoint("bury-after")
    store.workers.end(worker.id, proof)
    log.warning("buried a dead worker", extra={"fields": {"proof": proof, **_count(settlements)}})


def _settlement(ref: JobRef, wire_log: WireLog, proof: str) -> Settlement:
    job_id, attempt = ref
    match wire_log.verdict(job_id, attempt):
        case Wired.NEVER:
            never_left = Deferred("never_left", proof, retry_after=0.0, throttle=True)
            return Settlement(job_id, attempt, never_left)
        case Wired.MAYBE:
            return Settlement(job_id, attempt, InDoubt(proof), death_proof=proof)
        case Deferred() as deferred:
            return Settlement(job_id, attempt, deferred, retry_after=RETRY_AFTER_DEATH)
        case outcome:
            return Settlement(job_id, attempt, outcome, death_proof=proof)


def _count(settlements: Sequence[Settlement]) -> dict[str, int]:
    doubts = sum(isinstance(s.outcome, InDoubt) for s in settlements)
    return {"settled": len(settlements) - doubts, "in_doubt": doubts}
