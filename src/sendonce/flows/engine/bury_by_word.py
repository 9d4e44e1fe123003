"""Bury a worker whose death nobody here can prove, on an operator's word."""

from __future__ import annotations

import logging

from sendonce.domain.engine.workers import WorkerRecord
from sendonce.errors import NotFound, RefusedByRule
from sendonce.flows.engine.bury import bury_if_dead
from sendonce.ports.engine import EngineStore
from sendonce.ports.mortality import Graveyard

log = logging.getLogger(__name__)


def bury_by_word(
    store: EngineStore, graveyard: Graveyard, worker_id: str, actor: str, retry_after: float
) -> int:
    """What the worker had claimed is settled by its journal if that can be read, else put in doubt.

    How many jobs are in doubt by it. Raises NotFound for an unknown worker, and RefusedByRule for one that is
    over or can be seen to live.
    """
    status = store.workers.find(worker_id)
    if status is None:
        raise NotFound(f"There is no worker {worker_id!r}: 'sendonce workers list' shows what there is.")
    worker = status.record
    if status.ended_at is not None:
        raise RefusedByRule(f"Worker {worker.name} is over already: {status.end}.")
    if graveyard.sees_alive(worker):
        raise RefusedByRule(_alive(worker))
    if bury_if_dead(store, graveyard, worker, retry_after):
        return 0
    doubted = store.ledger.bury(worker.id, actor)
    log.warning("buried a worker by word", extra={"fields": {"worker": worker.name, "in_doubt": doubted}})
    return doubted


def _alive(worker: WorkerRecord) -> str:
    return (
        f"Worker {worker.name} (pid {worker.pid} on {worker.host}) is alive: it holds the lock of its file. "
        "Stop it first, with SIGTERM."
    )
