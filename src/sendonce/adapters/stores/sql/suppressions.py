"""Suppressions on SQL. The look-up key is a keyed hash, so an erased person stays suppressed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import planned_jobs, subscribers, suppressions, tenants
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import hold_pepper, pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.privacy import is_erased
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import (
    BY_LETTER,
    EVERYBODY,
    GRAVITY,
    RECIPIENT,
    NewSuppression,
    Suppression,
    SuppressionReason,
    may_undo,
)

S = suppressions.c
P = subscribers.c


class SqlSuppressions:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(
        self, scope: TenantId, address: Address, reason: SuppressionReason, note: str | None = None
    ) -> bool:
        with self._db.writing() as tx:
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            return suppress(tx, key, scope, address.text, reason, note, self._db.now(tx))

    def add_all(self, given: Sequence[NewSuppression]) -> int:
        with self._db.writing() as tx:
            pepper, now = pepper_in_force(self._db, tx), self._db.now(tx)
            # In the order of the keys, so that two imports at once wait in line.
            denied = sorted((suppression_key(each.address.key, pepper), n) for n, each in enumerate(given))
            return sum(
                suppress(tx, key, each.scope, each.address.text, each.reason, each.note, now)
                for key, each in ((key, given[n]) for key, n in denied)
            )

    def remove(self, scope: TenantId, address: Address, actor: str) -> bool:
        with self._db.writing() as tx:
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            removed = tx.execute(suppressions.delete().where(S.key == key, S.tenant_id == scope)).rowcount
            if removed:
                now = self._db.now(tx)
                insert_audit(tx, now, actor, "unsuppress", address.text, {"scope": scope})
            return removed == 1

    def covers(self, tenant_id: TenantId, address: Address) -> Suppression | None:
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
            suppress(tx, job.suppression_key, job.tenant_id, address, reason, BY_LETTER + job_id, now, job_id)
            mark_subscriber(tx, job.tenant_id, job.recipient_key, "unsubscribed", now)
            return str(job.recipient)

    def undoable(self, job_id: str) -> bool:
        with self._db.reading() as tx:
            job = _recipient(tx, job_id)
            return job is not None and self._may_undo(tx, _own(job), job_id)

    def resubscribe(self, job_id: str) -> str | None:
        with self._db.writing() as tx:
            hold_pepper(self._db, tx)
            job = _recipient(tx, job_id)
            if job is None:
                return None
            if self._may_undo(tx, _own(job).with_for_update(), job_id):
                self._undo(tx, job, job_id)
            return str(job.recipient)

    def _undo(self, tx: Connection, job: Any, job_id: str) -> None:
        now = self._db.now(tx)
        own = (S.key == job.suppression_key) & (S.tenant_id == job.tenant_id)
        tx.execute(suppressions.delete().where(own))
        person = (P.tenant_id == job.tenant_id) & (P.address_key == job.recipient_key)
        back = subscribers.update().where(person, P.status == "unsubscribed", P.bounce_type.is_(None))
        tx.execute(back.values(status="active", status_updated_at=now, updated_at=now))
        insert_audit(tx, now, RECIPIENT, "undo unsubscription", job.recipient, {"job": job_id})

    def _may_undo(self, tx: Connection, own: sa.Select[Any], job_id: str) -> bool:
        row = tx.execute(own).one_or_none()
        return row is not None and may_undo(as_suppression(row), job_id, self._db.now(tx))


def _recipient(tx: Connection, job_id: str) -> Any:
    j = planned_jobs.c
    query = sa.select(j.tenant_id, j.recipient, j.recipient_key, j.suppression_key).where(j.id == job_id)
    return tx.execute(query).one_or_none()


def _own(job: Any) -> sa.Select[Any]:
    """The suppression that its letter may have made."""
    return sa.select(suppressions).where(S.key == job.suppression_key, S.tenant_id == job.tenant_id)


# Built once: that takes longer than running them, and a bounce needs four.
_OWN = suppressions.update().where(S.key == sa.bindparam("own_key"), S.tenant_id == sa.bindparam("scope"))
_SUPPRESS = sa.text(
    "INSERT INTO suppressions (key, tenant_id, address, reason, note, job_id, created_at) "
    "VALUES (:own_key, :scope, :address, :reason, :note, :job, :now) "
    "ON CONFLICT (key, tenant_id) DO NOTHING"
).bindparams(sa.bindparam("now", type_=S.created_at.type), sa.bindparam("job", type_=S.job_id.type))
_SUPPRESS_FOR_GRAVER = _OWN.where(S.reason.in_(sa.bindparam("lighter", expanding=True))).values(
    reason=sa.bindparam("reason"), note=sa.bindparam("note")
)
_FORGET_LETTER = _OWN.where(S.job_id.is_not(None)).values(job_id=None)


def suppress(
    tx: Connection,
    key: str,
    scope: TenantId,
    address: str | None,
    reason: SuppressionReason,
    note: str | None,
    now: datetime,
    job_id: str | None = None,
) -> bool:
    """Add a suppression; a graver reason replaces a lighter one, never the other way.

    ``job_id`` is the letter whose link was clicked. Whatever else denies the same address cannot be undone.
    """
    own: dict[str, Any] = {"own_key": key, "scope": scope}
    values = {"address": address, "reason": reason, "note": note, "job": job_id, "now": now}
    if tx.execute(_SUPPRESS, own | values).rowcount == 1:
        return True
    lighter = [other for other in GRAVITY if GRAVITY[other] < GRAVITY[reason]]
    tx.execute(_SUPPRESS_FOR_GRAVER, own | {"lighter": lighter, "reason": reason, "note": note})
    if job_id is None:
        tx.execute(_FORGET_LETTER, own)
    return False


def suppress_all(tx: Connection, database: Database, scope: TenantId, given: Iterable[Suppression]) -> None:
    """``suppress`` for many at once, no key twice; none of them by a letter."""
    rows = [
        {
            "key": each.key,
            "tenant_id": scope,
            "address": each.address,
            "reason": each.reason,
            "note": each.note,
            "created_at": each.created_at,
        }
        for each in sorted(given, key=lambda each: each.key)  # so that two imports wait in line
    ]
    if not rows:
        return
    insert = insert_for(database)(suppressions)
    graver = _gravity(S.reason) < _gravity(insert.excluded.reason)
    merged = {
        "job_id": None,
        "reason": sa.case((graver, insert.excluded.reason), else_=S.reason),
        "note": sa.case((graver, insert.excluded.note), else_=S.note),
    }
    conflict = insert.on_conflict_do_update(
        index_elements=[S.key, S.tenant_id], set_=merged, where=graver | S.job_id.is_not(None)
    )
    tx.execute(conflict, rows)


def _gravity(reason: sa.ColumnElement[str]) -> sa.Case[int]:
    return sa.case({str(known): sa.literal_column(str(n)) for known, n in GRAVITY.items()}, value=reason)


def _of_person(tenant: sa.ColumnElement[bool]) -> tuple[sa.Update, sa.Update]:
    """Two statements: keep a subscriber's bounce, lower the status."""
    person = subscribers.update().where(tenant, P.address_key == sa.bindparam("person"))
    now = sa.bindparam("now", type_=P.updated_at.type)
    keep_bounce = person.values(
        bounce_type=sa.bindparam("type"), bounce_subtype=sa.bindparam("subtype"), updated_at=now
    )
    above = person.where(P.status.in_(sa.bindparam("above", expanding=True)))
    return keep_bounce, above.values(status=sa.bindparam("lower"), status_updated_at=now, updated_at=now)


_IN_TENANT = _of_person(P.tenant_id == sa.bindparam("scope"))
# Every tenant is named where all are meant: there is no index on addresses alone.
_IN_EVERY_TENANT = _of_person(P.tenant_id.in_(sa.select(tenants.c.id)))


def mark_subscriber(
    tx: Connection,
    scope: TenantId,
    address_key: str,
    status: str,
    now: datetime,
    bounce: tuple[str, str | None] | None = None,
) -> None:
    """Lower a subscriber's status: pending or active → bounced → unsubscribed, never back up."""
    keep_bounce, lower_status = _IN_EVERY_TENANT if scope == EVERYBODY else _IN_TENANT
    person = {"person": address_key, "now": now} | ({} if scope == EVERYBODY else {"scope": scope})
    if bounce is not None:
        tx.execute(keep_bounce, person | {"type": bounce[0], "subtype": bounce[1]})
    above = ["pending", "active"] + ([] if status == "bounced" else ["bounced"])
    tx.execute(lower_status, person | {"above": above, "lower": status})


def as_suppression(row: Row[Any]) -> Suppression:
    return Suppression(
        row.key,
        row.tenant_id,
        row.address,
        SuppressionReason(row.reason),
        row.note,
        row.created_at,
        row.job_id,
    )
