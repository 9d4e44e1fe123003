"""The plain statements of recording events: a few for a whole group, each dialect in its own way."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from sqlalchemy.engine import Connection

from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.evidence import TrackedJob
from sendonce.domain.engine.jobs import JobState


class EventRow(NamedTuple):
    """A row of delivery_events, in the order of the statement that inserts it; ``raw`` is JSON already."""

    id: str
    event_id: str
    natural_key: str
    kind: str
    verdict: str
    job_id: str | None
    attempt: int | None
    message_id: str | None
    recipient: str | None
    bounce_type: str | None
    bounce_subtype: str | None
    code: str | None
    reason: str | None
    occurred_at: datetime
    received_at: datetime
    raw: str


@dataclass(frozen=True, slots=True)
class Known:
    """By what a copy of an event is known."""

    ids: set[str]
    keys: set[str]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str]]) -> Known:
        found = list(rows)
        return cls({event_id for event_id, _ in found}, {key for _, key in found})

    def add(self, event_id: str, key: str) -> bool:
        """False for a copy."""
        if event_id in self.ids or key in self.keys:
            return False
        self.ids.add(event_id)
        self.keys.add(key)
        return True


class EventRows(Protocol):
    def open(self, tx: Connection) -> datetime:
        """Begin the transaction: durable, and with keys of people that stay as they are. The store's time."""

    def lock_jobs(self, tx: Connection, ids: Collection[str]) -> tuple[list[TrackedJob], set[str]]:
        """The jobs, locked, and the ids of those that somebody else has locked. One alone is waited for."""

    def known(self, tx: Connection, ids: Collection[str], keys: Collection[str]) -> Known:
        """Which of these event ids and natural keys have a row."""

    def write(self, tx: Connection, rows: list[EventRow], jobs: Collection[TrackedJob]) -> bool:
        """Insert the events and update the jobs that they change.

        False if somebody else has inserted one of the events since ``known``: then nothing may be committed.
        """


def event_rows_of(database: Database) -> EventRows:
    return SqliteEventRows(database) if database.is_sqlite else PostgresEventRows(database)


_STATE, _SETTLED_AT = map(TrackedJob._fields.index, ("state", "settled_at"))


class SqliteEventRows:
    """The transaction holds the only write lock, so what a SELECT saw is still so in the INSERT after it."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def open(self, tx: Connection) -> datetime:
        return self._db.now(tx)

    def lock_jobs(self, tx: Connection, ids: Collection[str]) -> tuple[list[TrackedJob], set[str]]:
        rows = self._driver(tx).execute(self._db.statement("event_jobs"), (json.dumps(list(ids)),))
        return [_tracked(row, _read) for row in rows], set()

    def known(self, tx: Connection, ids: Collection[str], keys: Collection[str]) -> Known:
        asked = (json.dumps(list(ids)), json.dumps(list(keys)))
        return Known.of(self._driver(tx).execute(self._db.statement("events_known"), asked))

    def write(self, tx: Connection, rows: list[EventRow], jobs: Collection[TrackedJob]) -> bool:
        moment = self._db.moment
        told = [(*row[:-3], moment(row.occurred_at), moment(row.received_at), row.raw) for row in rows]
        changed = [(*self._changeable(job), job.id) for job in jobs]
        self._driver(tx).executemany(self._db.statement("insert_events"), told)
        self._driver(tx).executemany(self._db.statement("update_event_jobs"), changed)
        return True

    def _changeable(self, job: TrackedJob) -> Iterable[Any]:
        for value in job[_STATE:]:
            yield self._db.moment(value) if isinstance(value, datetime) else value

    def _driver(self, tx: Connection) -> Any:
        return self._db.driver(tx)


class PostgresEventRows:
    """Others write at the same time. Whole groups travel as one JSON text: the driver is slow with arrays."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def open(self, tx: Connection) -> datetime:
        moment: datetime = self._execute(tx, "open_settle").fetchone()[0]
        return moment.astimezone(UTC)

    def lock_jobs(self, tx: Connection, ids: Collection[str]) -> tuple[list[TrackedJob], set[str]]:
        """A worker that settles a group locks its jobs in another order: whoever waited for it while holding
        some of them might wait for ever."""
        waits = "" if len(ids) == 1 else "SKIP LOCKED"
        statement = self._db.statement("event_jobs").replace("{waits}", waits)
        values = {"ids": list(ids)}
        rows = self._db.driver(tx).execute(statement, values).fetchall()
        jobs = [_tracked(row, _in_utc) for row in rows]
        missing = list(set(ids) - {job.id for job in jobs})
        locked = self._execute(tx, "jobs_among", {"ids": missing}).fetchall() if waits and missing else ()
        return jobs, {job_id for (job_id,) in locked}

    def known(self, tx: Connection, ids: Collection[str], keys: Collection[str]) -> Known:
        return Known.of(self._execute(tx, "events_known", {"ids": list(ids), "keys": list(keys)}))

    def write(self, tx: Connection, rows: list[EventRow], jobs: Collection[TrackedJob]) -> bool:
        # In one order, so that two groups with the same events wait in line and not for each other.
        told = [_event_as_json(row) for row in sorted(rows, key=lambda row: row.natural_key)]
        changed = json.dumps([_fields(job, job._fields) for job in jobs])
        values = {"events": f"[{','.join(told)}]", "jobs": changed}
        (inserted,) = self._execute(tx, "write_events", values).fetchone()
        return bool(inserted == len(rows))

    def _execute(self, tx: Connection, statement: str, values: dict[str, Any] | None = None) -> Any:
        return self._db.driver(tx).execute(self._db.statement(statement), values)


def _tracked(row: Sequence[Any], moment: Callable[[Any], datetime]) -> TrackedJob:
    times = [at and moment(at) for at in row[_SETTLED_AT:]]
    return TrackedJob._make((*row[:_STATE], JobState(row[_STATE]), *row[_STATE + 1 : _SETTLED_AT], *times))


def _read(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _event_as_json(row: EventRow) -> str:
    return json.dumps(_fields(row, row._fields[:-1]))[:-1] + f', "raw": {row.raw}}}'


def _fields(row: EventRow | TrackedJob, names: Sequence[str]) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in zip(names, row, strict=False)
    }
