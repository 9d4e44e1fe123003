"""Sender identities on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from sendonce.adapters.stores.schema import Moment, sender_identities
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.sender_identities import (
    NewSender,
    SenderIdentity,
    WaitingSender,
    address_taken,
)
from sendonce.domain.engine.tenants import TenantId

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
            mine = sa.and_(I.removed_at.is_not(None), I.tenant_id == tenant_id)
            put = put.on_conflict_do_update(index_elements=["address_key"], set_=described, where=mine)
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


# Sender after sender along their index: a GROUP BY would read all their dispatches. Instead of ">=" an "="
# would do, but then SQLite makes an index of its own.
_OPEN = "phase = 'running' AND NOT paused AND NOT cancelled AND sender_id <> '' AND due_from IS NOT NULL"
_WAITING = sa.text(f"""
    WITH RECURSIVE senders (id) AS (
        SELECT min(sender_id) FROM dispatches WHERE {_OPEN}
        UNION ALL
        SELECT (SELECT min(sender_id) FROM dispatches WHERE {_OPEN} AND sender_id > senders.id)
        FROM senders WHERE senders.id IS NOT NULL
    )
    SELECT id, (
        SELECT due_from FROM dispatches WHERE {_OPEN} AND sender_id >= senders.id
        ORDER BY sender_id, due_from LIMIT 1) AS due_from
    FROM senders WHERE id IS NOT NULL
""").columns(id=sa.Text, due_from=Moment)  # noqa: S608 (only the constant above is put in)


def _as_identity(row: Row[Any]) -> SenderIdentity:
    made = NewSender(**{name: getattr(row, name) for name in _MADE})
    return SenderIdentity(row.id, row.tenant_id, made, row.created_at, row.removed_at)
