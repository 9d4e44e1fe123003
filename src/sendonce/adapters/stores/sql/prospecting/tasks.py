"""Tasks on SQL. A taken task is due again when its lease ends, or when its worker is known to be dead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import processing_jobs
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.prospecting.tasks import NewTask, Task, TaskKind

T = processing_jobs.c
# Spelled out, so that SQLite sees that the index of open tasks will do.
_OPEN = sa.text("state IN ('waiting', 'leased')")


class SqlTasks:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, tasks: Sequence[NewTask], now: datetime) -> int:
        with self._db.writing() as tx:
            return sum(add_task(tx, self._db, task, now) for task in tasks)

    def take(
        self, kind: TaskKind, worker: str, limit: int, now: datetime, lease: timedelta
    ) -> Sequence[Task]:
        with self._db.writing() as tx:
            return take_tasks(tx, kind, worker, limit, now, lease)

    def done(self, task: Task, now: datetime) -> bool:
        with self._db.writing() as tx:
            return end_task(tx, task, now, state="done", reason=None)

    def put_off(self, task: Task, until: datetime, reason: str, now: datetime) -> bool:
        with self._db.writing() as tx:
            return end_task(tx, task, now, state="waiting", due_at=until, reason=reason)

    def fail(self, task: Task, reason: str, now: datetime) -> bool:
        with self._db.writing() as tx:
            return end_task(tx, task, now, state="failed", reason=reason)

    def release(self, worker: str, now: datetime) -> int:
        held = (T.state == "leased") & (T.leased_by == worker)
        freed = {"state": "waiting", "leased_by": None, "due_at": now, "updated_at": now}
        with self._db.writing() as tx:
            free = processing_jobs.update().where(held).values(**freed, attempts=T.attempts - 1)
            return tx.execute(free).rowcount

    def count_open(self, kind: TaskKind) -> int:
        query = sa.select(sa.func.count()).select_from(processing_jobs).where(T.kind == kind, _OPEN)
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one()


def add_task(tx: Connection, database: Database, task: NewTask, now: datetime) -> bool:
    """Whether it was not open yet. One that is done or failed is opened again."""
    fresh = {
        "payload": dict(task.payload),
        "priority": task.priority,
        "due_at": task.due_at or now,
        "window_until": task.window_until,
        "state": "waiting",
        "attempts": 0,
        "leased_by": None,
        "reason": None,
        "updated_at": now,
    }
    names = {"tenant_id": task.tenant_id, "kind": task.kind, "dedupe_key": task.key}
    insert = insert_for(database)(processing_jobs).values(id=new_id(now), created_at=now, **names, **fresh)
    closed = T.state.in_(["done", "failed"])
    again = insert.on_conflict_do_update(index_elements=[T.dedupe_key], set_=fresh, where=closed)
    return tx.execute(again.returning(T.id)).first() is not None


def take_tasks(
    tx: Connection, kind: TaskKind, worker: str, limit: int, now: datetime, lease: timedelta
) -> list[Task]:
    """Others skip the rows that this transaction has locked; on SQLite they wait for its end."""
    in_window = T.window_until.is_(None) | (T.window_until > now)
    due = (
        sa.select(T.id)
        .where(T.kind == kind, T.due_at <= now, in_window, _OPEN)
        .order_by(T.priority, T.due_at, T.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
        .cte("due")
    )
    take = (
        processing_jobs.update()
        .where(T.id.in_(sa.select(due.c.id)))
        .values(
            state="leased",
            leased_by=worker,
            due_at=now + lease,
            attempts=T.attempts + 1,
            updated_at=now,
        )
        .returning(T.id, T.tenant_id, T.payload, T.attempts, T.priority)
    )
    rows = sorted(tx.execute(take), key=lambda row: (row.priority, row.id))
    return [Task(row.id, row.tenant_id, kind, row.payload, row.attempts, worker) for row in rows]


def end_task(tx: Connection, task: Task, now: datetime, **changes: Any) -> bool:
    """Change a task that is still this worker's: a lease that ran out and was taken by another is not."""
    held = (
        (T.id == task.id)
        & (T.state == "leased")
        & (T.leased_by == task.worker)
        & (T.attempts == task.attempt)
    )
    changed = processing_jobs.update().where(held).values(leased_by=None, updated_at=now, **changes)
    return tx.execute(changed).rowcount == 1
