"""What no port shows: the outbox, the audit log, ended attempts; and a way to let time pass."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import sqlalchemy as sa

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.adapters.stores.schema import (
    attempts,
    audit_log,
    mailouts,
    message_jobs,
    outbox,
    permits,
    suppressions,
    workers,
)
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.jobs import JobState
from sendonce.ports import Store


def reports(store: Store) -> list[tuple[str, str]]:
    """The mailouts whose report is in the outbox, with the status that it tells."""
    if isinstance(store, MemoryStore):
        bodies = [body for topic, body in store.state.outbox if topic == "mailout.report"]
    else:
        query = sa.select(outbox.c.body).where(outbox.c.topic == "mailout.report").order_by(outbox.c.id)
        bodies = [row.body for row in _read(store, query)]
    return [(body["mailout_id"], body["status"]) for body in bodies]


def audit(store: Store) -> list[tuple[str, str, str]]:
    """Who did what to what."""
    if isinstance(store, MemoryStore):
        return store.state.audit
    log = audit_log.c
    return [
        tuple(row) for row in _read(store, sa.select(log.actor, log.action, log.subject).order_by(log.at))
    ]


def ended_attempts(store: Store, job_id: str) -> list[tuple[int, str]]:
    """The attempts that did not end the job, and how they ended."""
    if isinstance(store, MemoryStore):
        return sorted((a.attempt, a.outcome) for a in store.state.attempts if a.job_id == job_id)
    a = attempts.c
    query = sa.select(a.attempt, a.outcome).where(a.job_id == job_id).order_by(a.attempt)
    return [tuple(row) for row in _read(store, query)]


def pass_time(store: Store, seconds: float) -> None:
    """Let leases and suppressions grow older, and the times of mailouts come nearer."""
    gone = timedelta(seconds=seconds)
    if isinstance(store, MemoryStore):
        clock = store.state.clock
        store.state.clock = lambda: clock() + gone
        return
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx:
        for row in tx.execute(sa.select(permits)).all():
            own = (permits.c.key == row.key) & (permits.c.worker_id == row.worker_id)
            tx.execute(permits.update().where(own).values(expires_at=row.expires_at - gone))
        for row in tx.execute(sa.select(workers.c.id, workers.c.seen_at)).all():
            tx.execute(workers.update().where(workers.c.id == row.id).values(seen_at=row.seen_at - gone))
        for row in tx.execute(sa.select(mailouts).where(mailouts.c.planner_until.is_not(None))).all():
            own = mailouts.c.id == row.id
            tx.execute(mailouts.update().where(own).values(planner_until=row.planner_until - gone))
        for row in tx.execute(sa.select(mailouts).where(mailouts.c.send_at.is_not(None))).all():
            own = mailouts.c.id == row.id
            tx.execute(mailouts.update().where(own).values(send_at=row.send_at - gone))
        for row in tx.execute(sa.select(suppressions)).all():
            own = (suppressions.c.key == row.key) & (suppressions.c.tenant_id == row.tenant_id)
            tx.execute(suppressions.update().where(own).values(created_at=row.created_at - gone))


def forget_attempts(store: Store) -> None:
    """What a restore does: every job is as it was before it was claimed."""
    if isinstance(store, MemoryStore):
        for row in store.state.jobs.values():
            row.state, row.attempt, row.worker_id = JobState.SCHEDULED, 0, None
        return
    assert isinstance(store, SqlStore)
    with store.database.writing() as tx:
        tx.execute(message_jobs.update().values(state="scheduled", attempt=0, worker_id=None))


def steady_clock(store: Store) -> None:
    """Give the store in memory a clock that ticks at each look, so that its ids rise from call to call."""
    if isinstance(store, MemoryStore):
        ticks = count()
        begin = store.state.clock()
        store.state.clock = lambda: begin + timedelta(milliseconds=2 * next(ticks))


def _read(store: Store, query: sa.Select[tuple[object, ...]]) -> list[sa.Row[tuple[object, ...]]]:
    assert isinstance(store, SqlStore)
    with store.database.reading() as tx:
        return list(tx.execute(query))
