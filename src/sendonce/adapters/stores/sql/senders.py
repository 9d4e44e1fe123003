"""Sender identities on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from sendonce.adapters.stores.schema import dispatches, sender_identities
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_audit, insert_for, new_id
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.sender_identities import (
    NewSender,
    SenderIdentity,
    WaitingSender,
    address_taken,
)
from sendonce.domain.engine.tenants import TenantId

D = dispatches.c
I = sender_identities.c  # noqa: E741
_MADE = tuple(f.name for f in fields(NewSender))


class SqlSenders:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, tenant_id: TenantId, new: NewSender, actor: str) -> SenderIdentity:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            key = parse_address(new.address).key
            described = {**asdict(new), "tenant_id": tenant_id, "created_at": now, "removed_at": None}
            put = insert_for(self._db)(sender_identities).values(id=new_id(now), address_key=key, **described)
            put = put.on_conflict_do_update(
                index_elements=["address_key"], set_=described, where=I.removed_at.is_not(None)
            )
            row = tx.execute(put.returning(sender_identities)).one_or_none()
            if row is None:
                raise address_taken(new.address)
            insert_audit(tx, now, actor, "add_sender", row.id, {"address": new.address})
            return _as_identity(row)

    def get(self, sender_id: str) -> SenderIdentity | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(sender_identities).where(I.id == sender_id)).one_or_none()
            return _as_identity(row) if row else None

    def all(self, *, removed: bool = False) -> Sequence[SenderIdentity]:
        query = sa.select(sender_identities).order_by(I.address_key)
        with self._db.reading() as tx:
            rows = tx.execute(query if removed else query.where(I.removed_at.is_(None)))
            return [_as_identity(row) for row in rows]

    def remove(self, sender_id: str, actor: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            here = sender_identities.update().where(I.id == sender_id, I.removed_at.is_(None))
            if tx.execute(here.values(removed_at=now)).rowcount == 0:
                return False
            insert_audit(tx, now, actor, "remove_sender", sender_id, {})
            return True

    def waiting(self) -> Sequence[WaitingSender]:
        with self._db.reading() as tx:
            return [WaitingSender(row[0], row[1]) for row in tx.execute(_WAITING)]


def _waiting() -> sa.Select[Any]:
    """Sender after sender along the index: a GROUP BY would read all their dispatches."""
    open_ones = (
        D.phase == sa.literal_column("'running'"),
        ~D.paused,
        ~D.cancelled,
        D.sender_id != sa.literal_column("''"),
        D.due_from.is_not(None),
    )
    first = sa.select(sa.func.min(D.sender_id).label("id")).where(*open_ones)
    each = first.cte("senders", recursive=True)
    after = sa.select(sa.func.min(D.sender_id)).where(*open_ones, D.sender_id > each.c.id)
    each = each.union_all(sa.select(after.correlate(each).scalar_subquery()).where(each.c.id.is_not(None)))
    due = sa.select(sa.func.min(D.due_from, type_=D.due_from.type)).where(
        *open_ones, D.sender_id == each.c.id
    )
    return sa.select(each.c.id, due.correlate(each).scalar_subquery()).where(each.c.id.is_not(None))


_WAITING = _waiting()


def _as_identity(row: Row[Any]) -> SenderIdentity:
    made = NewSender(**{name: getattr(row, name) for name in _MADE})
    return SenderIdentity(row.id, row.tenant_id, made, row.created_at, row.removed_at)
