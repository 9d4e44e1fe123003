"""Tenants and their directions on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from sendonce.adapters.stores.schema import directions, tenants
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import Basis, Direction, NewDirection, Tenant

T, D = tenants.c, directions.c
_TENANT = (T.id, T.name, T.created_at, T.weight, T.daily)
_TOLD = tuple(field.name for field in fields(NewDirection))


class SqlTenants:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, tenant_id: TenantId, name: str, actor: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            put = insert_for(self._db)(tenants).values(id=tenant_id, name=name, created_at=now)
            put = put.on_conflict_do_nothing(index_elements=["id"]).returning(T.id)
            added = tx.execute(put).one_or_none() is not None
            if added:
                insert_audit(tx, now, actor, "add_tenant", tenant_id, {"name": name})
            return added

    def set_terms(self, tenant_id: TenantId, weight: int, daily: int | None, actor: str) -> None:
        terms = {"weight": weight, "daily": daily}
        with self._db.writing() as tx:
            tx.execute(tenants.update().where(T.id == tenant_id).values(terms))
            insert_audit(tx, self._db.now(tx), actor, "set_terms", tenant_id, terms)

    def get(self, tenant_id: TenantId) -> Tenant | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(*_TENANT).where(T.id == tenant_id)).one_or_none()
            return Tenant(*row) if row else None

    def all(self) -> Sequence[Tenant]:
        with self._db.reading() as tx:
            return [Tenant(*row) for row in tx.execute(sa.select(*_TENANT).order_by(T.id))]


class SqlDirections:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, tenant_id: TenantId, new: NewDirection, actor: str) -> Direction:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            told = {name: getattr(new, name) for name in _TOLD} | {"name": new.name or new.id}
            put = insert_for(self._db)(directions).values(
                tenant_id=tenant_id, created_at=now, updated_at=now, **told
            )
            put = put.on_conflict_do_update(
                index_elements=["tenant_id", "id"], set_={**told, "updated_at": now}
            )
            row = tx.execute(put.returning(directions)).one()
            words = {"jurisdiction": new.jurisdiction, "basis": new.basis, "note": new.note}
            insert_audit(tx, now, actor, "put_direction", f"{tenant_id}/{new.id}", words)
            return _as_direction(row)

    def get(self, tenant_id: TenantId, direction_id: str) -> Direction | None:
        query = sa.select(directions).where(D.tenant_id == tenant_id, D.id == direction_id)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_direction(row) if row else None

    def all(self, tenant_id: TenantId | None = None) -> Sequence[Direction]:
        query = sa.select(directions).order_by(D.tenant_id, D.id)
        if tenant_id is not None:
            query = query.where(D.tenant_id == tenant_id)
        with self._db.reading() as tx:
            return [_as_direction(row) for row in tx.execute(query)]


def _as_direction(row: Row[Any]) -> Direction:
    told = {field.name: getattr(row, field.name) for field in fields(Direction)}
    return Direction(**{**told, "basis": Basis(row.basis)})
