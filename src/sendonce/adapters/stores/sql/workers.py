"""Workers, their shares of the sending rate, and canaries, on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from sendonce.adapters.stores.schema import canaries, dispatches, job_states, permit_keys, permits, workers
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import in_state
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.pacing import PERMIT_GRACE, PERMIT_LEASE, fair_share
from sendonce.domain.engine.workers import Pulse, WorkerRecord, WorkerStatus
from sendonce.errors import RefusedByRule

W = workers.c
P = permits.c
C = canaries.c


class SqlWorkers:
    def __init__(self, database: Database) -> None:
        self._db = database

    def register(self, worker: WorkerRecord) -> None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            values = {name: getattr(worker, name) for name in WorkerRecord.__slots__}
            tx.execute(workers.insert().values({**values, "started_at": now, "seen_at": now}))

    def end(self, worker_id: str, how: str) -> None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            lock_worker(tx, worker_id)
            if count := tx.execute(_sending_of(worker_id)).scalar_one():
                raise RefusedByRule(
                    f"Worker {worker_id} still owns {count} jobs: settle them before it ends."
                )
            sign_off(tx, worker_id, how, now)

    def open(self) -> Sequence[WorkerRecord]:
        with self._db.reading() as tx:
            return [_record(row) for row in tx.execute(_OPEN)]

    def see(self, worker_id: str, pulse: Pulse) -> None:
        with self._db.writing() as tx:
            said = {"seen_at": self._db.now(tx), **pulse._asdict()}
            tx.execute(workers.update().where(W.id == worker_id).values(said))

    def find(self, worker_id: str) -> WorkerStatus | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(workers).where(W.id == worker_id)).first()
            return self._status(tx, row) if row else None

    def statuses(self, *, ended: int = 0) -> Sequence[WorkerStatus]:
        over = sa.select(workers).where(W.ended_at.is_not(None)).order_by(W.ended_at.desc(), W.id)
        with self._db.reading() as tx:
            rows = [*tx.execute(_OPEN), *tx.execute(over.limit(ended))]
            return [self._status(tx, row) for row in rows]

    def _status(self, tx: sa.Connection, row: Any) -> WorkerStatus:
        sending = tx.execute(_sending_of(row.id)).scalar_one()
        return WorkerStatus(_record(row), sending, row.ended_at, row.end)

    def claims_of(self, worker_ids: Sequence[str]) -> dict[str, int]:
        with self._db.reading() as tx:
            query = sa.select(W.id, W.claims).where(W.id.in_(worker_ids))
            return {row.id: row.claims for row in tx.execute(query)}


_OPEN = sa.select(workers).where(W.ended_at.is_(None)).order_by(W.started_at, W.id)


def _record(row: Any) -> WorkerRecord:
    return WorkerRecord(**{name: getattr(row, name) for name in WorkerRecord.__slots__})


def _sending_of(worker_id: str) -> sa.Select[Any]:
    owned = job_states.c.worker_id == worker_id
    return sa.select(sa.func.count()).select_from(job_states).where(in_state(JobState.SENDING), owned)


def lock_worker(tx: sa.Connection, worker_id: str) -> bool:
    """Whether the worker is open. Its claims wait for this transaction, or this one for theirs."""
    own = sa.select(W.ended_at).where(W.id == worker_id).with_for_update()
    row = tx.execute(own).first()
    return row is not None and row.ended_at is None


def sign_off(tx: sa.Connection, worker_id: str, how: str, now: datetime) -> None:
    """The worker is over, and its permits and its planning return."""
    tx.execute(workers.update().where(W.id == worker_id, W.ended_at.is_(None)).values(ended_at=now, end=how))
    tx.execute(permits.update().where(P.worker_id == worker_id, P.expires_at > now).values(expires_at=now))
    planned = dispatches.update().where(sa.text("phase <> 'over'"), dispatches.c.planner == worker_id)
    tx.execute(planned.values(planner=None))


class SqlPermits:
    def __init__(self, database: Database) -> None:
        self._db = database

    def renew(self, key: str, worker_id: str, rate: int, held: int) -> int:
        with self._db.writing() as tx:
            self._lock(tx, key)
            now = self._db.now(tx)
            tx.execute(
                permits.delete().where(P.key == key, P.expires_at < now - timedelta(seconds=PERMIT_GRACE))
            )
            rows = tx.execute(sa.select(P.worker_id, P.permits).where(P.key == key)).all()
            shares = {row.worker_id: row.permits for row in rows}
            shares.pop(worker_id, None)
            may_hold = fair_share(rate, worker_id, shares, held)
            expires = now + timedelta(seconds=PERMIT_LEASE)
            tx.execute(permits.delete().where(P.key == key, P.worker_id == worker_id))
            tx.execute(
                permits.insert().values(
                    key=key, worker_id=worker_id, permits=max(may_hold, held), expires_at=expires
                )
            )
            return may_hold

    def _lock(self, tx: sa.Connection, key: str) -> None:
        insert = sa.text("INSERT INTO permit_keys (key) VALUES (:key) ON CONFLICT (key) DO NOTHING")
        tx.execute(insert, {"key": key})
        tx.execute(sa.select(permit_keys).where(permit_keys.c.key == key).with_for_update())

    def release(self, key: str, worker_id: str) -> None:
        """Let go; the permits may have been used this very second, so they rest for the grace time."""
        with self._db.writing() as tx:
            now = self._db.now(tx)
            own = permits.update().where(P.key == key, P.worker_id == worker_id)
            tx.execute(own.values(expires_at=now))


class SqlCanaries:
    def __init__(self, database: Database) -> None:
        self._db = database

    def launch(self, canary_id: str, route: str) -> None:
        with self._db.writing() as tx:
            tx.execute(canaries.insert().values(id=canary_id, route=route, sent_at=self._db.now(tx)))

    def accepted(self, canary_id: str, message_id: str) -> None:
        with self._db.writing() as tx:
            tx.execute(canaries.update().where(C.id == canary_id).values(message_id=message_id))

    def last(self, route: str) -> tuple[datetime, bool] | None:
        query = sa.select(C.sent_at, C.event_at).where(C.route == route, C.message_id.is_not(None))
        with self._db.reading() as tx:
            row = tx.execute(query.order_by(C.sent_at.desc()).limit(1)).first()
            return (row.sent_at, row.event_at is not None) if row else None
