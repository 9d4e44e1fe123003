"""The arrows of the job state machine as conditional updates, shared by settling and by events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import attempts, dispatches, job_states
from sendonce.adapters.stores.sql.books import Tally
from sendonce.adapters.stores.sql.dispatches import lock_dispatch, make_room
from sendonce.domain.engine.dispatches import CANCELLED
from sendonce.domain.engine.evidence import acceptance, sent_by_evidence
from sendonce.domain.engine.jobs import MOVES, Evidence, JobState, Move

JOBS = job_states.c

# A worker that is not heard of again leaves its job in doubt, unless an earlier attempt is proven.
DOUBTED = sa.case((JOBS.accepted_attempt.is_(None), "in_doubt"), else_="sent")


def lock_dispatches(tx: Connection, job_ids: Iterable[str]) -> None:
    """Lock the dispatches of these jobs, before any job: who makes a job scheduled may have to reopen one.

    Always in the order of the ids, so that two who lock several wait in line and not for each other.
    SQLite writes one at a time, so there the lock is already held. On PostgreSQL it is the lock that an
    UPDATE takes: a stronger one would stop the foreign-key checks of those who write jobs.
    """
    ids = sorted(set(job_ids))
    for start in range(0, len(ids), 500):
        of_jobs = sa.select(JOBS.dispatch_id).where(JOBS.id.in_(ids[start : start + 500]))
        locked = sa.select(dispatches.c.id).where(dispatches.c.id.in_(of_jobs)).order_by(dispatches.c.id)
        tx.execute(locked.with_for_update(key_share=True))


def lock_job(tx: Connection, job_id: str) -> Row[Any] | None:
    query = sa.select(job_states).where(JOBS.id == job_id).with_for_update(key_share=True)
    return tx.execute(query).one_or_none()


def move(
    tx: Connection, tally: Tally, row: Row[Any], why: Move, target: JobState, changes: dict[str, Any]
) -> int:
    """One conditional arrow; 0 when the job is not where the arrow begins. Its row is locked."""
    changes = {"state": target, **changes}
    update = (
        job_states.update()
        .where(JOBS.id == row.id, JOBS.attempt == row.attempt, JOBS.state.in_(MOVES[why][0]))
        .values(changes)
    )
    moved = tx.execute(update).rowcount
    if moved:
        tally.change(row, changes)
    return moved


def back_to_schedule(
    tx: Connection, tally: Tally, row: Row[Any], why: Move, changes: dict[str, Any], now: datetime
) -> int:
    """An arrow that makes a job scheduled: its dispatch is reopened, unless it was cancelled.

    The caller holds the dispatch's lock.
    """
    dispatch = lock_dispatch(tx, row.dispatch_id)
    assert dispatch is not None
    if dispatch.cancelled:
        skipped = {**changes, "reason": CANCELLED, "settled_at": now}
        return move(tx, tally, row, why, JobState.SKIPPED, skipped)
    moved = move(tx, tally, row, why, JobState.SCHEDULED, changes)
    if moved:
        make_room(tx, dispatch, changes["due_at"], now)
    return moved


def accept(
    tx: Connection, tally: Tally, row: Any, attempt: int, message_id: str | None, now: datetime
) -> Evidence:
    """Evidence that an attempt was accepted."""
    evidence, changes = acceptance(row, attempt, message_id, now)
    if changes:
        tx.execute(job_states.update().where(JOBS.id == row.id).values(**changes))
        tally.change(row, changes)
    return evidence


def fall_back_on_evidence(tx: Connection, tally: Tally, row: Any, now: datetime) -> int:
    """The attempt on the wire was not accepted, but an earlier one is proven to be: the job is sent."""
    return move(tx, tally, row, Move.ACCEPT, JobState.SENT, sent_by_evidence(row, row.accepted_attempt, now))


def archive_attempt(
    tx: Connection,
    row: Row[Any],
    now: datetime,
    outcome: str,
    code: str | None,
    reason: str | None,
    absence_proof: str | None = None,
) -> None:
    tx.execute(
        attempts.insert().values(
            job_id=row.id,
            attempt=row.attempt,
            worker_id=row.worker_id,
            claimed_at=row.claimed_at,
            ended_at=now,
            outcome=outcome,
            code=code,
            reason=reason,
            death_proof=row.death_proof,
            absence_proof=absence_proof,
        )
    )
