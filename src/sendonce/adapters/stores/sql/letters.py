"""Letters on SQL."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import letters
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import new_id
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import TenantId

_FIELDS = tuple(f.name for f in fields(Letter))


class SqlLetters:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, tenant_id: TenantId, letter: Letter) -> str:
        with self._db.writing() as tx:
            return insert_letter(tx, tenant_id, letter, self._db.now(tx))

    def get(self, letter_id: str) -> Letter | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(letters).where(letters.c.id == letter_id)).one_or_none()
        return as_letter(row) if row else None


def as_letter(row: Row[Any]) -> Letter:
    return Letter(**{name: getattr(row, name) for name in _FIELDS})


def insert_letter(tx: Connection, tenant_id: TenantId, letter: Letter, now: datetime) -> str:
    letter_id = new_id(now)
    own = {"id": letter_id, "tenant_id": tenant_id, "created_at": now}
    tx.execute(letters.insert().values(**asdict(letter), **own))
    return letter_id
