"""Gauges and alarms on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    alarms,
    delivery_events,
    dispatch_books,
    dispatches,
    gauge_readings,
    job_states,
    workers,
)
from sendonce.adapters.stores.sql.books import COLUMNS, STATES, WHOLE_LEDGER, read_books
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.jobs import SqlJobs
from sendonce.adapters.stores.sql.rows import in_state, insert_for
from sendonce.domain.engine.alarms import Alarm, Trouble
from sendonce.domain.engine.gauges import KEPT_FOR, TENANTS_OVER, Gauges, fold_tenants
from sendonce.domain.engine.ids import first_id_of
from sendonce.domain.engine.jobs import Books, JobState

A = alarms.c
B = dispatch_books.c
D = dispatches.c
E = delivery_events.c
J = job_states.c
R = gauge_readings.c
_MOST_LOOKED_AT = 1000


class SqlGaugeLog:
    def __init__(self, database: Database) -> None:
        self._db = database

    def read(self) -> Gauges:
        due = SqlJobs(self._db).oldest_due()
        with self._db.reading() as tx:
            now = self._db.now(tx)
            age = max((now - due).total_seconds(), 0.0) if due is not None else 0.0
            return Gauges(now, read_books(tx, WHOLE_LEDGER), age, {})

    def take(self) -> Gauges:
        now = self.read()
        with self._db.reading() as tx:
            tenants = fold_tenants(_tenant_books(tx, now.taken_at))
        taken = Gauges(now.taken_at, now.books, now.queue_age, tenants)
        with self._db.writing() as tx:
            tx.execute(gauge_readings.delete().where(R.taken_at < now.taken_at - KEPT_FOR))
            put = insert_for(self._db)(gauge_readings)
            kept = put.values(taken_at=taken.taken_at, gauges=_as_document(taken))
            tx.execute(kept.on_conflict_do_nothing())
        return taken

    def last_day(self) -> Sequence[Gauges]:
        with self._db.reading() as tx:
            return [_as_gauges(row) for row in tx.execute(sa.select(gauge_readings).order_by(R.taken_at))]

    def newest(self) -> Gauges | None:
        query = sa.select(gauge_readings).order_by(R.taken_at.desc()).limit(1)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_gauges(row) if row else None

    def day_ago(self) -> Gauges | None:
        with self._db.reading() as tx:
            since = self._db.now(tx) - timedelta(days=1)
            old = sa.select(gauge_readings).where(R.taken_at <= since).order_by(R.taken_at.desc())
            first = sa.select(gauge_readings).order_by(R.taken_at)
            row = tx.execute(old.limit(1)).one_or_none() or tx.execute(first.limit(1)).one_or_none()
            return _as_gauges(row) if row else None

    def last_event(self) -> datetime | None:
        newest = sa.select(E.received_at, E.event_id).order_by(E.received_at.desc()).limit(_MOST_LOOKED_AT)
        with self._db.reading() as tx:
            told = (at for at, event_id in tx.execute(newest) if not event_id.startswith("mailbox:"))
            return next(told, None)

    def unheard(self, transport: str, since: datetime, until: datetime) -> int:
        newest = (
            sa.select(J.worker_id)
            .where(in_state(JobState.SENT), J.send_event_at.is_(None), J.claimed_at.between(since, until))
            .order_by(J.claimed_at.desc())
            .limit(_MOST_LOOKED_AT)
            .subquery()
        )
        by_it = newest.join(workers, workers.c.id == newest.c.worker_id)
        query = sa.select(sa.func.count()).select_from(by_it).where(workers.c.transport == transport)
        with self._db.reading() as tx:
            return int(tx.execute(query).scalar_one())


def _tenant_books(tx: Connection, now: datetime) -> dict[str, Books]:
    """Of dispatches that are open or not long made; ids rise with time, so no others are looked at."""
    columns = sa.select(D.id, D.tenant_id)
    recent = columns.where(D.id >= first_id_of(now - TENANTS_OVER))
    # In the words of its index, or the index is not used.
    still_open = columns.where(sa.text("phase <> 'over'"))
    shown = sa.union(recent, still_open).subquery()
    sums = [sa.func.sum(B[name]).label(name) for name in COLUMNS]
    query = sa.select(shown.c.tenant_id, *sums).join(dispatch_books, B.dispatch_id == shown.c.id)
    return {row.tenant_id: _books_of(row) for row in tx.execute(query.group_by(shown.c.tenant_id))}


def _books_of(row: Row[Any]) -> Books:
    own = {name: int(getattr(row, name)) for name in COLUMNS}
    return Books(planned=sum(own[state] for state in STATES), **own)


def _as_document(taken: Gauges) -> dict[str, Any]:
    tenants = {name: asdict(books) for name, books in taken.tenants.items()}
    return {"books": asdict(taken.books), "queue_age": taken.queue_age, "tenants": tenants}


def _as_gauges(row: Row[Any]) -> Gauges:
    kept = row.gauges
    tenants = {name: Books(**books) for name, books in kept["tenants"].items()}
    return Gauges(row.taken_at, Books(**kept["books"]), kept["queue_age"], tenants)


class SqlAlarms:
    def __init__(self, database: Database) -> None:
        self._db = database

    def stand(self, trouble: Trouble) -> Alarm:
        with self._db.writing() as tx:
            new = insert_for(self._db)(alarms).values(**trouble._asdict(), began_at=self._db.now(tx))
            put = new.on_conflict_do_update(index_elements=["about"], set_={"text": trouble.text})
            return Alarm(**tx.execute(put.returning(alarms)).one()._mapping)

    def note_told(self, about: str) -> None:
        with self._db.writing() as tx:
            tx.execute(alarms.update().where(A.about == about).values(told=True))

    def end(self, about: str) -> bool:
        with self._db.writing() as tx:
            return tx.execute(alarms.delete().where(A.about == about)).rowcount > 0

    def standing(self) -> Sequence[Alarm]:
        with self._db.reading() as tx:
            rows = tx.execute(sa.select(alarms).order_by(A.began_at, A.about))
            return [Alarm(**row._mapping) for row in rows]
