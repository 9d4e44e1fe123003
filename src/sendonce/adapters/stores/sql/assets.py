"""Images of letters on SQL, under the hash of their content."""

from __future__ import annotations

import sqlalchemy as sa

from sendonce.adapters.stores.schema import assets
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for

A = assets.c


class SqlAssets:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, sha256: str, content_type: str, content: bytes) -> None:
        with self._db.writing() as tx:
            values = {"sha256": sha256, "content_type": content_type, "content": content}
            insert = insert_for(self._db)(assets).values(**values, created_at=self._db.now(tx))
            tx.execute(insert.on_conflict_do_nothing())

    def get(self, sha256: str) -> tuple[str, bytes] | None:
        query = sa.select(A.content_type, A.content).where(A.sha256 == sha256)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return (row.content_type, bytes(row.content)) if row else None
