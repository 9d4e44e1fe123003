"""The outbox on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from sendonce.adapters.stores.schema import outbox
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_outbox

ENTRY = outbox.c


class SqlOutbox:
    def __init__(self, database: Database) -> None:
        self._db = database

    def due(self, topic: str, limit: int) -> Sequence[tuple[str, dict[str, Any]]]:
        query = (
            sa.select(ENTRY.id, ENTRY.body)
            .where(ENTRY.topic == topic, ENTRY.done_at.is_(None))
            .order_by(ENTRY.id)
            .limit(limit)
        )
        with self._db.reading() as tx:
            return [(row.id, row.body) for row in tx.execute(query)]

    def done(self, entry_id: str) -> None:
        with self._db.writing() as tx:
            tx.execute(outbox.update().where(ENTRY.id == entry_id).values(done_at=self._db.now(tx)))

    def put(self, topic: str, body: dict[str, Any]) -> None:
        with self._db.writing() as tx:
            insert_outbox(tx, self._db.now(tx), topic, body)
