"""Settle doubt by an operator's word, where no evidence is to be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.tenants import DispatchId
from sendonce.errors import BadInput
from sendonce.flows.engine.find_jobs import find_jobs
from sendonce.ports.engine import EngineStore

MOST_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class Word:
    """Of which jobs it is said: those named, and those of a dispatch, of a worker's crash, or of both.

    ``sent`` is what the operator knows of them, and ``note`` is how.
    """

    sent: bool
    jobs: Sequence[str] = ()
    dispatch_id: DispatchId | None = None
    worker_id: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """How many jobs were chosen, and how many of them were in doubt and are settled."""

    asked: int
    moved: int


def resolve_by_word(store: EngineStore, word: Word, actor: str) -> Resolution:
    """It is written to the audit log. Raises BadInput where nothing is chosen."""
    chosen = [job.id for job in find_jobs(store, word.jobs)]
    if word.dispatch_id or word.worker_id:
        found = store.jobs.list(
            states=[JobState.IN_DOUBT],
            dispatch_id=word.dispatch_id,
            worker_id=word.worker_id,
            limit=MOST_AT_ONCE,
        )
        chosen += [job.id for job in found]
    if not chosen:
        raise BadInput("Name the jobs, or give --mailout or --worker: 'sendonce jobs in-doubt' lists them.")
    moved = store.ledger.resolve(chosen, sent=word.sent, actor=actor, note=word.note)
    return Resolution(len(chosen), moved)
