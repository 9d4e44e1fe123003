"""What becomes of dispatches and jobs when a restored or copied database is adopted."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import dispatches, message_jobs
from sendonce.adapters.stores.sql.arrows import DOUBTED
from sendonce.adapters.stores.sql.rows import in_state
from sendonce.domain.engine.dispatches import RESTORED
from sendonce.domain.engine.jobs import ADOPTED_ATTEMPTS, MOVES, JobState, Move

JOBS = message_jobs.c


def doubt_all(tx: Connection) -> int:
    """What the forgotten time may have sent; how many jobs are newly in doubt."""
    _pause_what_may_have_started(tx)
    before = sa.select(sa.func.count()).where(in_state(JobState.IN_DOUBT))
    known = tx.execute(before).scalar_one()
    _doubt_open_jobs(tx)
    _mark_ended_jobs(tx)
    return int(tx.execute(before).scalar_one() - known)


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
    open_states = ["scheduled", "sending", "in_doubt"]
    tx.execute(message_jobs.update().where(JOBS.state.in_(open_states)).values(changes))


def _mark_ended_jobs(tx: Connection) -> None:
    """Failed and dead jobs may have been retried in that time: see ``ended_before_adoption``."""
    changes = {"attempt": JOBS.attempt + ADOPTED_ATTEMPTS, "worker_id": None}
    tx.execute(message_jobs.update().where(JOBS.state.in_(MOVES[Move.RETRY][0])).values(changes))
