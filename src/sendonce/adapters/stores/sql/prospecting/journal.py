"""The pipeline's journal on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import sqlalchemy as sa

from sendonce.adapters.stores.schema import pipeline_journal
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import new_id
from sendonce.domain.engine.ids import first_id_of
from sendonce.domain.prospecting.pipeline import JournalLine, StepName

L = pipeline_journal.c


class SqlPipelineJournal:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, line: JournalLine) -> None:
        with self._db.writing() as tx:
            tx.execute(pipeline_journal.insert().values({**asdict(line), "id": new_id(line.at)}))

    def lines(
        self, *, step: StepName | None = None, before: str = "", limit: int = 1000
    ) -> Sequence[JournalLine]:
        query = sa.select(pipeline_journal).order_by(L.id.desc()).limit(limit)
        if step is not None:
            query = query.where(L.step == step)
        if before:
            query = query.where(L.id < before)
        with self._db.reading() as tx:
            rows = tx.execute(query).mappings()
            return [JournalLine(**{**row, "step": StepName(row["step"])}) for row in rows]

    def prune(self, before: datetime, most: int) -> int:
        old = sa.select(L.id).where(L.id < first_id_of(before)).order_by(L.id).limit(most)
        with self._db.reading() as tx:
            ids = list(tx.execute(old).scalars())
        if not ids:
            return 0  # nearly always: a look costs no turn of the one writer that SQLite has
        with self._db.writing() as tx:
            return tx.execute(pipeline_journal.delete().where(L.id.in_(ids))).rowcount
