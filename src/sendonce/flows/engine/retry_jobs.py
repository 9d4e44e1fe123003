"""Give dead and failed letters another life, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sendonce.domain.engine.dead_letters import DeadCause, cause_of
from sendonce.domain.engine.jobs import MOVES, Job, JobState, Move
from sendonce.domain.engine.tenants import DispatchId
from sendonce.errors import RefusedByRule
from sendonce.ports.engine import EngineStore

CHUNK = 1000
WITHOUT_CODE = "no code"


@dataclass(frozen=True, slots=True)
class RetryOrder:
    """Which letters: those in ``states``, of one dispatch or of all, with any code or with this one, for any
    cause or for this one.

    ``not_sent_elsewhere`` is an operator's word on those that ended before the database was adopted.
    """

    states: Sequence[JobState]
    dispatch_id: DispatchId | None = None
    code: str | None = None
    not_sent_elsewhere: bool = False
    cause: DeadCause | None = None

    def takes(self, job: Job) -> bool:
        return self.cause in (None, cause_of(job))


@dataclass(frozen=True, slots=True)
class RetryReport:
    """``found`` counts by state and code; ``moved`` of them are scheduled again.

    ``left`` are the ids of those that may have been sent from another copy of the database.
    """

    moved: int
    found: dict[tuple[JobState, str], int]
    left: tuple[str, ...] = ()

    @property
    def asked(self) -> int:
        return sum(self.found.values())


def retry_all(store: EngineStore, order: RetryOrder, actor: str) -> RetryReport:
    """Schedule them again, a chunk per transaction. What was accepted or is in doubt is never among them.

    Raises RefusedByRule for a dispatch that was cancelled: that is final. Among all of them, it is left out.
    """
    cancelled: dict[str, bool] = {}
    if order.dispatch_id is not None:
        _refuse_if_cancelled(store, order.dispatch_id)
    found: Counter[tuple[JobState, str]] = Counter()
    left: list[str] = []
    moved, after = 0, ""
    while jobs := store.jobs.list(
        states=order.states, dispatch_id=order.dispatch_id, code=order.code, after=after, limit=CHUNK
    ):
        after = jobs[-1].id
        for dispatch_id in {job.dispatch_id for job in jobs} - cancelled.keys():
            cancelled[dispatch_id] = _is_cancelled(store, dispatch_id)
        chosen = [job for job in jobs if not cancelled[job.dispatch_id] and order.takes(job)]
        found.update(_kind(job) for job in chosen)
        left += _left_alone(chosen, order.not_sent_elsewhere)
        moved += store.ledger.retry(
            [job.id for job in chosen], actor, not_sent_elsewhere=order.not_sent_elsewhere
        )
    return RetryReport(moved, dict(found), tuple(left))


def retry_named(
    store: EngineStore, jobs: Sequence[Job], actor: str, *, not_sent_elsewhere: bool = False
) -> RetryReport:
    """The same for letters that somebody named."""
    may_move = [job for job in jobs if job.state in MOVES[Move.RETRY][0]]
    for dispatch_id in {job.dispatch_id for job in may_move}:
        _refuse_if_cancelled(store, dispatch_id)
    moved = 0
    for start in range(0, len(may_move), CHUNK):
        chunk = [job.id for job in may_move[start : start + CHUNK]]
        moved += store.ledger.retry(chunk, actor, not_sent_elsewhere=not_sent_elsewhere)
    left = _left_alone(may_move, not_sent_elsewhere)
    return RetryReport(moved, dict(Counter(_kind(job) for job in jobs)), tuple(left))


def _left_alone(jobs: Sequence[Job], not_sent_elsewhere: bool) -> list[str]:
    return [job.id for job in jobs if job.ended_before_adoption and not not_sent_elsewhere]


def _kind(job: Job) -> tuple[JobState, str]:
    return job.state, job.code or WITHOUT_CODE


def _refuse_if_cancelled(store: EngineStore, dispatch_id: DispatchId) -> None:
    dispatch = store.dispatches.get(dispatch_id)
    if dispatch is not None and dispatch.cancelled:
        name = f"{dispatch.kind.capitalize()} {dispatch_id}"
        raise RefusedByRule(f"{name} was cancelled, and that is final: nothing of it is sent again.")


def _is_cancelled(store: EngineStore, dispatch_id: DispatchId) -> bool:
    dispatch = store.dispatches.get(dispatch_id)
    return dispatch is not None and dispatch.cancelled
