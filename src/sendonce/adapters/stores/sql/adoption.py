"""What becomes of dispatches and jobs when a restored or copied database is adopted."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import dispatches, job_states
from sendonce.adapters.stores.sql.arrows import DOUBTED
from sendonce.adapters.stores.sql.books import counted
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.dispatches import RESTORED
from sendonce.domain.engine.jobs import ADOPTED_ATTEMPTS, MOVES, JobState, Move

JOBS = job_states.c
_OPEN = JOBS.state.in_(["scheduled", "sending", "in_doubt"])
_TO_BE_DOUBTED = (
    sa.select(JOBS.dispatch_id, JOBS.state, DOUBTED.label("target"), sa.func.count())
    .where(_OPEN)
    .group_by(JOBS.dispatch_id, JOBS.state, sa.text("target"))
)


def doubt_all(database: Database, tx: Connection) -> int:
    """What the forgotten time may have sent; how many jobs are newly in doubt."""
    if not database.is_sqlite:
        # What is counted must be what is moved, so nobody may move a job in between.
        tx.exec_driver_sql("LOCK TABLE job_states IN SHARE ROW EXCLUSIVE MODE")
    _pause_what_may_have_started(tx)
    newly = 0
    with counted(database, tx) as tally:
        for dispatch_id, source, target, count in tx.execute(_TO_BE_DOUBTED).all():
            tally.move(dispatch_id, source, target, count)
            newly += (target == JobState.IN_DOUBT) * count - (source == JobState.IN_DOUBT) * count
        _doubt_open_jobs(tx)
    _mark_ended_jobs(tx)
    return newly


def _pause_what_may_have_started(tx: Connection) -> None:
    """A dispatch may have planned the rest of its jobs in that time, and one may have been started."""
    unsure = dispatches.c.phase.in_(["preparing", "planning"])
    tx.execute(dispatches.update().where(unsure).values(paused=True, reason=RESTORED))


def _doubt_open_jobs(tx: Connection) -> None:
    """The proofs of the time before are worth nothing either."""
    changes = {
        "state": DOUBTED,
        "reason": RESTORED,
        "attempt": JOBS.attempt + ADOPTED_ATTEMPTS,
        "worker_id": None,
        "death_proof": None,
        "death_proof_at": None,
    }
    tx.execute(job_states.update().where(_OPEN).values(changes))


def _mark_ended_jobs(tx: Connection) -> None:
    """Failed and dead jobs may have been retried in that time: see ``ended_before_adoption``."""
    changes = {"attempt": JOBS.attempt + ADOPTED_ATTEMPTS, "worker_id": None}
    tx.execute(job_states.update().where(JOBS.state.in_(MOVES[Move.RETRY][0])).values(changes))
