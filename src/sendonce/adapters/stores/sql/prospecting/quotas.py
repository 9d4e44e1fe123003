"""Sliding windows and money on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import quotas
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.prospecting.quotas import Limit, Permit, WindowUse, permit
from sendonce.domain.prospecting.searches import Budget

Q = quotas.c


class SqlQuotas:
    def __init__(self, database: Database) -> None:
        self._db = database

    def windows(self, key: str, limits: Sequence[Limit], now: datetime) -> Sequence[WindowUse]:
        with self._db.reading() as tx:
            return _windows(tx, key, limits, now)

    def spent(self, budget: Budget) -> float:
        with self._db.reading() as tx:
            return spent(tx, budget)


def take_permits(
    tx: Connection, database: Database, key: str, wanted: int, limits: Sequence[Limit], now: datetime
) -> Permit:
    """Takers of one key wait for each other until their transactions are over. On SQLite all writers do."""
    if not database.is_sqlite:
        number = sa.func.hashtextextended(f"quota {key}", 0)
        tx.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))
    longest = timedelta(seconds=max(limit.span for limit in limits))
    tx.execute(quotas.delete().where(Q.key == key, Q.at <= now - longest))
    given = permit(wanted, _windows(tx, key, limits, now))
    if given.granted:
        _use(tx, database, key, now, given.granted)
    return given


def _windows(tx: Connection, key: str, limits: Sequence[Limit], now: datetime) -> list[WindowUse]:
    """A use that another clock dated in the future counts too."""
    found = []
    for limit in limits:
        inside = (Q.key == key) & (Q.at > now - timedelta(seconds=limit.span))
        used, oldest = tx.execute(sa.select(sa.func.sum(Q.used), sa.func.min(Q.at)).where(inside)).one()
        age = (now - oldest).total_seconds() if oldest else 0.0
        found.append(WindowUse(limit, used or 0.0, age))
    return found


def spent(tx: Connection, budget: Budget) -> float:
    own = (Q.key == budget.key) & (Q.at == budget.month)
    return tx.execute(sa.select(Q.used).where(own)).scalar_one_or_none() or 0.0


def spend(tx: Connection, database: Database, budget: Budget, submissions: int) -> None:
    """A negative number returns what was set aside."""
    _use(tx, database, budget.key, budget.month, submissions * budget.price)


def _use(tx: Connection, database: Database, key: str, at: datetime, amount: float) -> None:
    insert = insert_for(database)(quotas).values(key=key, at=at, used=amount)
    more = insert.on_conflict_do_update(index_elements=["key", "at"], set_={"used": Q.used + amount})
    tx.execute(more)
