"""Rows to values, and the small writes that several tables share."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import job_states, outbox
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.ids import time_ordered_id
from sendonce.domain.engine.jobs import Job, JobState

_JOB_FIELDS = tuple(f.name for f in fields(Job) if f.name != "state")


def as_job(row: Row[Any]) -> Job:
    return Job(state=JobState(row.state), **{name: getattr(row, name) for name in _JOB_FIELDS})


def in_state(state: JobState, of: sa.FromClause = job_states) -> sa.ColumnElement[bool]:
    """Spelled out in the statement: only so can SQLite see that the index of that state's jobs will do.

    It takes the index of all ids all the same where rows are to come in their order; such are sorted here.
    """
    return of.c.state == sa.literal_column(f"'{state}'")


def new_id(now: datetime) -> str:
    return time_ordered_id(int(now.timestamp() * 1000))


def insert_outbox(tx: Connection, now: datetime, topic: str, body: dict[str, Any]) -> None:
    tx.execute(
        outbox.insert().values(id=new_id(now), topic=topic, body=body, created_at=now, due_at=now, tries=0)
    )


def insert_for(database: Database) -> Any:
    """INSERT … ON CONFLICT is spelled by each dialect's own construct."""
    if database.is_sqlite:
        from sqlalchemy.dialects.sqlite import insert
    else:
        from sqlalchemy.dialects.postgresql import insert  # type: ignore[assignment]
    return insert
