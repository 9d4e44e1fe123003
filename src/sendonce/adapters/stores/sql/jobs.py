"""Looking at the ledger: books and lists, for people and reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from sendonce.adapters.stores.schema import mailouts, message_jobs, suppressions
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import as_job
from sendonce.domain.jobs import Books, Job, JobState

JOBS = message_jobs.c


class SqlJobs:
    def __init__(self, database: Database) -> None:
        self._db = database

    def books(self, mailout_id: str) -> Books:
        query = (
            sa.select(
                JOBS.state,
                sa.func.count(),
                sa.func.count(JOBS.delivered_at),
                sa.func.count(JOBS.bounced_at),
                sa.func.count(JOBS.complained_at),
                sa.func.count(JOBS.duplicate_at),
            )
            .where(JOBS.mailout_id == mailout_id)
            .group_by(JOBS.state)
        )
        with self._db.reading() as tx:
            rows = tx.execute(query).all()
        marks = [sum(column) for column in zip(*(row[2:] for row in rows), strict=True)] or [0, 0, 0, 0]
        return Books(
            planned=sum(row[1] for row in rows),
            **{row[0]: row[1] for row in rows},
            delivered=marks[0],
            bounced=marks[1],
            complained=marks[2],
            duplicates=marks[3],
        )

    def count_by_state(self) -> dict[str, int]:
        with self._db.reading() as tx:
            query = sa.select(JOBS.state, sa.func.count()).group_by(JOBS.state)
            return {row[0]: row[1] for row in tx.execute(query)}

    def count_unsubscribed(self, mailout_id: str) -> int:
        s = suppressions.c
        own = (s.key == JOBS.suppression_key) & (s.tenant_id == JOBS.tenant_id)
        query = (
            sa.select(sa.func.count())
            .select_from(message_jobs.join(suppressions, own))
            .where(JOBS.mailout_id == mailout_id, JOBS.state == "sent")
            .where(s.reason == "unsubscribed", s.created_at >= JOBS.claimed_at)
        )
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one()

    def troubles(self, mailout_id: str, limit: int) -> tuple[Sequence[Job], int]:
        trouble = sa.or_(
            JOBS.state.in_(["failed", "dead", "in_doubt"]),
            JOBS.bounced_at.is_not(None),
            JOBS.complained_at.is_not(None),
        )
        where = (JOBS.mailout_id == mailout_id) & trouble
        with self._db.reading() as tx:
            total = tx.execute(sa.select(sa.func.count()).select_from(message_jobs).where(where)).scalar_one()
            rows = tx.execute(sa.select(message_jobs).where(where).order_by(JOBS.id).limit(limit))
            return [as_job(row) for row in rows], total

    def oldest_due(self) -> datetime | None:
        query = (
            sa.select(sa.func.min(JOBS.due_at, type_=JOBS.due_at.type))
            .join(mailouts, mailouts.c.id == JOBS.mailout_id)
            .where(JOBS.state == "scheduled", mailouts.c.status == "sending", mailouts.c.phase == "running")
            .where(~mailouts.c.paused, ~mailouts.c.cancelled)
        )
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one_or_none()

    def list(
        self,
        *,
        states: Sequence[JobState] = (),
        mailout_id: str | None = None,
        worker_id: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> Sequence[Job]:
        query = sa.select(message_jobs).order_by(JOBS.id).limit(limit)
        if states:
            query = query.where(JOBS.state.in_(states))
        if mailout_id:
            query = query.where(JOBS.mailout_id == mailout_id)
        if worker_id:
            query = query.where(JOBS.worker_id == worker_id)
        if after:
            query = query.where(JOBS.id > after)
        with self._db.reading() as tx:
            return [as_job(row) for row in tx.execute(query)]

    def get(self, job_id: str) -> Job | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(message_jobs).where(JOBS.id == job_id)).one_or_none()
            return as_job(row) if row else None
