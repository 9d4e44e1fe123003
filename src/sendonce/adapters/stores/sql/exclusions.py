"""Leaving out whom an earlier mailout went to, without reading its jobs again for every chunk.

Their keys are copied in chunks into a table of the mailout's own, which the planner asks by its primary
key and empties at the end.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import excluded_recipients, message_jobs, subscribers
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.engine.jobs import MOVES, JobState, Move
from sendonce.domain.mailouts.exclusions import NOT_REACHED, was_reached

J = message_jobs.c
X = excluded_recipients.c


def gather_excluded(database: Database, tx: Connection, mailout: Row[Any], size: int) -> str | None:
    """Copy the next keys of each earlier mailout; how far all of them have come, None at their end."""
    ends = []
    for earlier in mailout.except_of:
        query = sa.select(J.recipient_key, J.suppression_key, J.state, J.worker_id).where(
            J.dispatch_id == earlier, J.recipient_key > mailout.except_cursor
        )
        jobs = tx.execute(query.order_by(J.recipient_key).limit(size)).all()
        reached = {job.suppression_key for job in jobs if was_reached(JobState(job.state), job.worker_id)}
        if reached:
            rows = [
                {"mailout_id": mailout.id, "suppression_key": key, "by_mailout_id": earlier}
                for key in sorted(reached)
            ]
            tx.execute(insert_for(database)(excluded_recipients).on_conflict_do_nothing(), rows)
        if len(jobs) == size:
            ends.append(jobs[-1].recipient_key)
    return min(ends) if ends else None


def excluded_by(mailout_id: str, key: sa.ColumnElement[str]) -> sa.ScalarSelect[Any]:
    """The earlier mailout that a person got; null for everybody else."""
    own = sa.select(X.by_mailout_id).where(X.mailout_id == mailout_id, X.suppression_key == key)
    return own.scalar_subquery()


def forget_excluded(tx: Connection, mailout_id: str, size: int) -> bool:
    """Remove the next keys; True when none is left."""
    some = sa.select(X.suppression_key).where(X.mailout_id == mailout_id).limit(size)
    gone = excluded_recipients.delete().where(X.mailout_id == mailout_id, X.suppression_key.in_(some))
    return tx.execute(gone).rowcount < size


def count_excluded(tx: Connection, tenant_id: str, earlier: list[str]) -> int:
    """Active subscribers whom one of the earlier mailouts went to, or may have. One pass over each table."""
    ended_before_adoption = sa.and_(J.state.in_(MOVES[Move.RETRY][0]), J.worker_id.is_(None))
    reached = sa.or_(J.state.not_in(NOT_REACHED), ended_before_adoption)
    got = sa.select(J.suppression_key).where(J.dispatch_id.in_(earlier), reached)
    people = subscribers.c
    query = sa.select(sa.func.count()).select_from(subscribers)
    query = query.where(people.tenant_id == tenant_id, people.status == "active")
    return int(tx.execute(query.where(people.suppression_key.in_(got))).scalar_one())
