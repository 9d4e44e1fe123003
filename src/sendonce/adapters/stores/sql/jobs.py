"""Looking at the ledger: books and lists, for people and reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from sendonce.adapters.stores.schema import (
    canaries,
    delivery_events,
    dispatches,
    job_states,
    message_jobs,
    suppressions,
)
from sendonce.adapters.stores.sql.books import STATES, WHOLE_LEDGER, read_books
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.dispatches import ASLEEP, AWAKE, CLAIMABLE
from sendonce.adapters.stores.sql.neighbours import accepted_near
from sendonce.adapters.stores.sql.rows import as_job, in_state
from sendonce.domain.engine.doubts import Doubt
from sendonce.domain.engine.ids import prefix_range
from sendonce.domain.engine.jobs import Books, Job, JobState
from sendonce.domain.engine.reports import ERROR_STATES, TROUBLES, RecipientOutcome
from sendonce.domain.engine.sent_folder import AcceptedNear
from sendonce.domain.people.suppressions import BY_LETTER

JOBS = message_jobs.c
MOVING = job_states.c
EVENTS = delivery_events.c


def _in_trouble() -> sa.ColumnElement[bool]:
    """Sent, and something bad was told of it."""
    marks = (JOBS.bounced_at, JOBS.complained_at, JOBS.rejected_at)
    return sa.and_(JOBS.state == JobState.SENT, sa.or_(*(mark.is_not(None) for mark in marks)))


def _told(column: sa.Column[Any], otherwise: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """What the last bad event of a job says; most jobs have none, and none is looked for."""
    event = (
        sa.select(column)
        .where(EVENTS.job_id == JOBS.id, EVENTS.kind.in_(TROUBLES))
        .order_by(EVENTS.occurred_at.desc(), EVENTS.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return sa.case((_in_trouble(), event), else_=otherwise)


# Times leave SQLite as text: the report of a million recipients has five million of them.
_MOMENTS = (
    *(JOBS.claimed_at, JOBS.settled_at, JOBS.delivered_at),
    *(JOBS.bounced_at, JOBS.complained_at, JOBS.rejected_at),
)
_OUTCOMES = sa.select(
    *(JOBS.recipient_key, JOBS.recipient, JOBS.state),
    *(_told(EVENTS.reason, JOBS.reason), _told(EVENTS.code, JOBS.code)),
    *(JOBS.message_id, JOBS.attempt),
    *(sa.type_coerce(moment, sa.types.NullType()) for moment in _MOMENTS),
)


def _as_outcome(row: Sequence[Any]) -> RecipientOutcome:
    key, recipient, state, reason, code, message_id, attempt, *moments = row
    told = (reason, code, message_id, attempt)
    return RecipientOutcome._make((key, recipient, JobState(state), *told, *map(_moment, moments)))


def _moment(value: str | datetime | None) -> datetime | None:
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return value


class SqlJobs:
    def __init__(self, database: Database) -> None:
        self._db = database

    def books(self, dispatch_id: str) -> Books:
        with self._db.reading() as tx:
            return read_books(tx, dispatch_id)

    def count_by_state(self) -> dict[str, int]:
        with self._db.reading() as tx:
            books = read_books(tx, WHOLE_LEDGER)
        return {state: count for state in STATES if (count := getattr(books, state))}

    def count_unsubscribed(self, dispatch_id: str) -> int:
        s = suppressions.c
        own = (s.key == JOBS.suppression_key) & (s.tenant_id == JOBS.tenant_id)
        query = (
            sa.select(sa.func.count())
            .select_from(message_jobs.join(suppressions, own))
            .where(JOBS.dispatch_id == dispatch_id, JOBS.state == "sent")
            .where(s.reason == "unsubscribed", s.created_at >= JOBS.claimed_at)
            .where(s.note.startswith(BY_LETTER))
        )
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one()

    def troubles(
        self, dispatch_id: str, limit: int, *, among: Sequence[str] | None = None
    ) -> tuple[Sequence[Job], int]:
        where = (JOBS.dispatch_id == dispatch_id) & sa.or_(JOBS.state.in_(ERROR_STATES), _in_trouble())
        if among is not None:
            where &= JOBS.id.in_(among)
        with self._db.reading() as tx:
            total = tx.execute(sa.select(sa.func.count()).select_from(message_jobs).where(where)).scalar_one()
            rows = tx.execute(sa.select(message_jobs).where(where).order_by(JOBS.id).limit(limit))
            return [as_job(row) for row in rows], total

    def handed_over_since(self, moment: datetime) -> int:
        d = dispatches.c
        changed = sa.select(d.id).where(sa.or_(d.phase != sa.literal_column("'over'"), d.ended_at > moment))
        claimed = sa.select(sa.func.count()).select_from(job_states)
        claimed = claimed.where(MOVING.dispatch_id.in_(changed), MOVING.claimed_at > moment)
        launched = sa.select(sa.func.count()).where(canaries.c.sent_at > moment)
        with self._db.reading() as tx:
            return int(tx.execute(claimed).scalar_one() + tx.execute(launched).scalar_one())

    def oldest_due(self, sender_id: str | None = None) -> datetime | None:
        with self._db.reading() as tx:
            first = sa.select(sa.func.min(MOVING.due_at, type_=MOVING.due_at.type))
            first = first.where(in_state(JobState.SCHEDULED), MOVING.dispatch_id == dispatches.c.id)
            due = first.correlate(dispatches).scalar_subquery()
            # Of those that sleep only the one that comes due first.
            whose = sa.true() if sender_id is None else dispatches.c.sender_id == sender_id
            awake = sa.select(due).select_from(dispatches).where(AWAKE, whose)
            asleep = sa.select(due).select_from(dispatches).where(CLAIMABLE, ASLEEP, whose)
            asleep = asleep.where(dispatches.c.due_from.is_not(None))
            asleep = asleep.order_by(dispatches.c.due_from).limit(1)
            times = [*tx.execute(awake).scalars(), *tx.execute(asleep).scalars()]
            return min((time for time in times if time is not None), default=None)

    def next_due(self, dispatch_id: str) -> Job | None:
        scheduled = in_state(JobState.SCHEDULED, message_jobs)
        query = sa.select(message_jobs).where(JOBS.dispatch_id == dispatch_id, scheduled)
        with self._db.reading() as tx:
            row = tx.execute(query.order_by(JOBS.due_at, JOBS.id).limit(1)).one_or_none()
            return as_job(row) if row else None

    def list(
        self,
        *,
        states: Sequence[JobState] = (),
        dispatch_id: str | None = None,
        worker_id: str | None = None,
        code: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> Sequence[Job]:
        if dispatch_id and not (after or worker_id or code) and list(states) in ([], [JobState.SENT]):
            return self._first_of(dispatch_id, states, limit)
        query = sa.select(message_jobs).order_by(JOBS.id).limit(limit)
        if dispatch_id:
            query = query.where(JOBS.dispatch_id == dispatch_id)
        if worker_id:
            query = query.where(JOBS.worker_id == worker_id)
        if code:
            query = query.where(JOBS.code == code)
        if after:
            query = query.where(JOBS.id > after)
        # One state at a time: the rare ones have small indexes of their own.
        queries = [query.where(in_state(state, message_jobs)) for state in states] or [query]
        with self._db.reading() as tx:
            jobs = [as_job(row) for each in queries for row in tx.execute(each)]
        return sorted(jobs, key=attrgetter("id"))[:limit]

    def _first_of(self, dispatch_id: str, states: Sequence[JobState], limit: int) -> Sequence[Job]:
        """All jobs, or those sent. There is no index of them, but ids rise with time: the jobs of a dispatch
        come behind its own id, close together, and its books tell when there are no more."""
        behind = JOBS.id > dispatch_id
        # SQLite would gather and sort all jobs of the dispatch, if it saw that it has an index of them.
        own = JOBS.dispatch_id + "" == dispatch_id if self._db.is_sqlite else JOBS.dispatch_id == dispatch_id
        with self._db.reading() as tx:
            books = read_books(tx, dispatch_id)
            most = min(limit, books.sent if states else books.planned)
            wanted = [in_state(state, message_jobs) for state in states]
            query = sa.select(message_jobs).where(behind, own, *wanted)
            return [as_job(row) for row in tx.execute(query.order_by(JOBS.id).limit(most))]

    def outcomes(
        self, dispatch_id: str, *, after: str = "", limit: int = 5000, only_errors: bool = False
    ) -> Sequence[RecipientOutcome]:
        query = _OUTCOMES.where(JOBS.dispatch_id == dispatch_id, JOBS.recipient_key > after)
        if only_errors:
            query = query.where(sa.or_(JOBS.state.in_(ERROR_STATES), _in_trouble()))
        with self._db.reading() as tx:
            rows = tx.execute(query.order_by(JOBS.recipient_key).limit(limit)).all()
        return [_as_outcome(tuple(row)) for row in rows]

    def with_prefix(self, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        with self._db.reading() as tx:
            query = sa.select(JOBS.id).where(JOBS.id.between(first, last)).order_by(JOBS.id).limit(limit)
            return list(tx.execute(query).scalars())

    def accepted_near(self, doubt: Doubt, sender_id: str, limit: int) -> AcceptedNear:
        with self._db.reading() as tx:
            return accepted_near(tx, doubt, sender_id, limit)

    def get(self, job_id: str) -> Job | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(message_jobs).where(JOBS.id == job_id)).one_or_none()
            return as_job(row) if row else None
