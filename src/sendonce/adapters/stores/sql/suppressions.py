"""Suppressions on SQL. The look-up key is a keyed hash, so an erased person stays suppressed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import message_jobs, subscribers, suppressions
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import hold_pepper, pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_audit
from sendonce.domain.addresses import Address, suppression_key
from sendonce.domain.privacy import is_erased
from sendonce.domain.suppressions import EVERYBODY, GRAVITY, Suppression, SuppressionReason

S = suppressions.c
P = subscribers.c


class SqlSuppressions:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, scope: str, address: Address, reason: SuppressionReason, note: str | None = None) -> bool:
        with self._db.writing() as tx:
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            return suppress(tx, key, scope, address.text, reason, note, self._db.now(tx))

    def remove(self, scope: str, address: Address, actor: str) -> bool:
        with self._db.writing() as tx:
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            removed = tx.execute(suppressions.delete().where(S.key == key, S.tenant_id == scope)).rowcount
            if removed:
                now = self._db.now(tx)
                insert_audit(tx, now, actor, "unsuppress", address.text, {"scope": scope})
            return removed == 1

    def covers(self, tenant_id: str, address: Address) -> Suppression | None:
        with self._db.reading() as tx:
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            query = sa.select(suppressions).where(S.key == key, S.tenant_id.in_([tenant_id, EVERYBODY]))
            row = tx.execute(query.order_by(S.tenant_id)).first()
            return as_suppression(row) if row else None

    def all(self, *, after: tuple[str, str] = ("", ""), limit: int = 1000) -> Sequence[Suppression]:
        query = (
            sa.select(suppressions)
            .where(sa.tuple_(S.key, S.tenant_id) > sa.tuple_(*map(sa.literal, after)))
            .order_by(S.key, S.tenant_id)
            .limit(limit)
        )
        with self._db.reading() as tx:
            return [as_suppression(row) for row in tx.execute(query)]

    def unsubscribe(self, job_id: str) -> str | None:
        with self._db.writing() as tx:
            hold_pepper(self._db, tx)
            job = _recipient(tx, job_id)
            if job is None:
                return None
            now = self._db.now(tx)
            reason = SuppressionReason.UNSUBSCRIBED
            address = None if is_erased(job.recipient) else job.recipient
            suppress(tx, job.suppression_key, job.tenant_id, address, reason, f"job {job_id}", now)
            mark_subscriber(tx, job.tenant_id, job.recipient_key, "unsubscribed", now)
            return str(job.recipient)

    def resubscribe(self, job_id: str) -> str | None:
        with self._db.writing() as tx:
            hold_pepper(self._db, tx)
            job = _recipient(tx, job_id)
            if job is None:
                return None
            own = (S.key == job.suppression_key) & (S.tenant_id == job.tenant_id)
            undone = suppressions.delete().where(own, S.reason == SuppressionReason.UNSUBSCRIBED)
            if tx.execute(undone).rowcount:
                now = self._db.now(tx)
                person = (P.tenant_id == job.tenant_id) & (P.address_key == job.recipient_key)
                back = subscribers.update().where(person, P.status == "unsubscribed", P.bounce_type.is_(None))
                tx.execute(back.values(status="active", status_updated_at=now, updated_at=now))
            return str(job.recipient)


def _recipient(tx: Connection, job_id: str) -> Any:
    j = message_jobs.c
    query = sa.select(j.tenant_id, j.recipient, j.recipient_key, j.suppression_key).where(j.id == job_id)
    return tx.execute(query).one_or_none()


def suppress(
    tx: Connection,
    key: str,
    scope: str,
    address: str | None,
    reason: SuppressionReason,
    note: str | None,
    now: datetime,
) -> bool:
    """Add a suppression; a graver reason replaces a lighter one, never the other way."""
    insert = sa.text(
        "INSERT INTO suppressions (key, tenant_id, address, reason, note, created_at) "
        "VALUES (:key, :scope, :address, :reason, :note, :now) ON CONFLICT (key, tenant_id) DO NOTHING"
    ).bindparams(sa.bindparam("now", now, S.created_at.type))
    values = {"key": key, "scope": scope, "address": address, "reason": reason, "note": note}
    if tx.execute(insert, values).rowcount == 1:
        return True
    lighter = [other for other in GRAVITY if GRAVITY[other] < GRAVITY[reason]]
    graver = suppressions.update().where(S.key == key, S.tenant_id == scope, S.reason.in_(lighter))
    tx.execute(graver.values(reason=reason, note=note))
    return False


def mark_subscriber(
    tx: Connection,
    tenant_id: str,
    address_key: str,
    status: str,
    now: datetime,
    bounce: tuple[str, str | None] | None = None,
) -> None:
    """Lower a subscriber's status: active → bounced → unsubscribed, never back up."""
    person = subscribers.update().where(P.tenant_id == tenant_id, P.address_key == address_key)
    if bounce is not None:
        tx.execute(person.values(bounce_type=bounce[0], bounce_subtype=bounce[1], updated_at=now))
    above = ["active"] if status == "bounced" else ["active", "bounced"]
    tx.execute(person.where(P.status.in_(above)).values(status=status, status_updated_at=now, updated_at=now))


def as_suppression(row: Row[Any]) -> Suppression:
    return Suppression(
        row.key, row.tenant_id, row.address, SuppressionReason(row.reason), row.note, row.created_at
    )
