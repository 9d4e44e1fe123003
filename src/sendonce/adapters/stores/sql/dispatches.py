"""Dispatches on SQL: their jobs planned by any door, paused, cancelled, and finished when nothing is open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import dispatches, job_states
from sendonce.adapters.stores.sql.arrays import text_array
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.books import STATES, booked, counted
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import hold_pepper, pepper_in_force
from sendonce.adapters.stores.sql.person_index import look_again_behind
from sendonce.adapters.stores.sql.rows import in_state, insert_outbox, new_id
from sendonce.domain.engine.dispatches import (
    CANCELLED,
    DOOR,
    PLANNED_WITHIN,
    Dispatch,
    DispatchPhase,
    DispatchResult,
    NewDispatch,
    NewJob,
    ended_topic,
    refuse_other_senders,
)
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.engine.jobs import BEFORE_ALL, JobState
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.errors import NotFound, RefusedByRule

D = dispatches.c
J = job_states.c
_FIELDS = tuple(f.name for f in fields(Dispatch) if f.name not in ("phase", "result"))
# In the words of the indexes: SQLite does not see that "paused = 0" is "NOT paused".
PLANNING = sa.text("dispatches.phase = 'planning' AND dispatches.phase <> 'over'")
RUNNING = sa.text("dispatches.phase = 'running'")
CLAIMABLE = sa.text("dispatches.phase = 'running' AND NOT dispatches.paused AND NOT dispatches.cancelled")
AWAKE, ASLEEP = sa.text("dispatches.awake"), sa.text("NOT dispatches.awake")
# A job's first time is from its planning, every later one from a retry.
_RETRIED = sa.text("job_states.attempt > 0")
_MAY_BE_OVER = sa.text("(dispatches.due_from IS NULL OR dispatches.cancelled)")


class SqlDispatches:
    def __init__(self, database: Database) -> None:
        self._db = database

    def open(self, tenant_id: TenantId, new: NewDispatch) -> Dispatch:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            lease = {"planner": DOOR, "planner_until": now + PLANNED_WITHIN}
            started = {"phase": "planning", "started_at": now, **lease}
            dispatch_id = insert_dispatch(tx, new_id(now), tenant_id, new, now, **started)
            return as_dispatch(tx.execute(sa.select(dispatches).where(D.id == dispatch_id)).one()._mapping)

    def plan(self, dispatch_id: str, jobs: Sequence[NewJob]) -> int:
        with self._db.writing() as tx:
            hold_pepper(self._db, tx)
            now = self._db.now(tx)
            row = lock_dispatch(tx, dispatch_id)
            if row is None:
                raise NotFound(f"There is no dispatch {dispatch_id}.")
            if row.cancelled:
                raise RefusedByRule(f"Dispatch {dispatch_id} was cancelled, and that is final: plan another.")
            refuse_other_senders(dispatch_id, row.sender_id, jobs)
            added = insert_jobs(self._db, tx, row, self._planned(tx, jobs, now), now)
            if row.phase == DispatchPhase.PLANNING:
                own = dispatches.update().where(D.id == dispatch_id)
                tx.execute(own.values(planner_until=now + PLANNED_WITHIN))
            if added:
                first = min(job.due_at or now for job in jobs)
                make_room(tx, row, first, now, own_times=any(job.due_at for job in jobs))
            return added

    def _planned(self, tx: Connection, jobs: Sequence[NewJob], now: datetime) -> list[PlannedJob]:
        pepper = pepper_in_force(self._db, tx)
        ids = time_ordered_ids(len(jobs), int(now.timestamp() * 1000))
        return [
            PlannedJob(
                job_id,
                job.recipient.text,
                job.recipient.key,
                suppression_key(job.recipient.key, pepper),
                json.dumps(job.fields, ensure_ascii=False),
                "scheduled",
                None,
                json.dumps(self._own(job)),
            )
            for job_id, job in zip(ids, jobs, strict=True)
        ]

    def _own(self, job: NewJob) -> dict[str, Any]:
        due = str(self._db.moment(job.due_at)) if job.due_at else None
        thread = {"thread": asdict(job.thread)} if job.thread else {}
        own = {"due_at": due, "letter_id": job.letter_id, "sender_id": job.sender_id}
        return {**own, **thread, "priority": job.priority}

    def run(self, dispatch_id: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            update = dispatches.update().where(D.id == dispatch_id, D.phase == "planning")
            return tx.execute(update.values(phase="running", updated_at=now)).rowcount == 1

    def abandoned(self) -> Sequence[DispatchId]:
        with self._db.reading() as tx:
            late = sa.and_(D.planner == DOOR, D.planner_until < self._db.now(tx))
            query = sa.select(D.id).where(PLANNING, late).order_by(D.id)
            return list(tx.execute(query).scalars())

    def get(self, dispatch_id: str) -> Dispatch | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(dispatches).where(D.id == dispatch_id)).one_or_none()
            return as_dispatch(row._mapping) if row else None

    # -- pausing, cancelling, finishing --------------------------------------------------------

    def running(self, after: str, limit: int) -> Sequence[DispatchId]:
        query = sa.select(D.id).where(RUNNING, D.id > (after or BEFORE_ALL)).order_by(D.id).limit(limit)
        with self._db.reading() as tx:
            return list(tx.execute(query).scalars())

    def to_finish(self, *, among: Sequence[DispatchId] = ()) -> Sequence[Dispatch]:
        # In order: SQLite would walk through another index of running dispatches.
        noted = sa.select(dispatches).where(RUNNING, _MAY_BE_OVER).order_by(D.id)
        looked_at = sa.select(dispatches).where(RUNNING, D.id.in_(among))
        looked_at = looked_at.where(~_has_job(JobState.SCHEDULED, JobState.SENDING))
        with self._db.reading() as tx:
            rows = [*tx.execute(noted).mappings(), *(tx.execute(looked_at).mappings() if among else ())]
        found = {row["id"]: as_dispatch(row) for row in rows}
        return [found[dispatch_id] for dispatch_id in sorted(found)]

    def put_off_beyond(self, longest: timedelta, among: Sequence[DispatchId]) -> Sequence[DispatchId]:
        with self._db.reading() as tx:
            latest = sa.select(sa.func.max(J.due_at, type_=J.due_at.type)).where(J.dispatch_id == D.id)
            latest = latest.where(in_state(JobState.SCHEDULED)).correlate(dispatches)
            planned, retried = latest.scalar_subquery(), latest.where(_RETRIED).scalar_subquery()
            far = sa.case((D.own_times, retried), else_=planned) > self._db.now(tx) + longest
            query = sa.select(D.id).where(RUNNING, D.id.in_(among), ~D.cancelled, far).order_by(D.id)
            return list(tx.execute(query).scalars())

    def set_paused(self, dispatch_id: str, paused: bool) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            update = dispatches.update().where(
                D.id == dispatch_id, D.phase != "over", D.started_at.is_not(None), ~D.cancelled
            )
            reason = D.reason if paused else None
            changed = update.values(paused=paused, reason=reason, awake=False, updated_at=now)
            return tx.execute(changed).rowcount == 1

    def cancel(self, dispatch_id: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            row = lock_dispatch(tx, dispatch_id)
            if row is None or row.cancelled or row.phase == DispatchPhase.OVER:
                return False
            changes: dict[str, Any] = {"cancelled": True, "reason": CANCELLED, "awake": False}
            if row.started_at is None:
                changes |= {"phase": "over", "result": "failed", "ended_at": now}
            elif row.phase == DispatchPhase.PREPARING:
                changes["phase"] = "running"  # there is nothing to plan any more
            tx.execute(dispatches.update().where(D.id == dispatch_id).values(**changes, updated_at=now))
            insert_audit(tx, now, "operator", "cancel", dispatch_id, {})
            return True

    def cancel_chunk(self, dispatch_id: str, size: int) -> int:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            chosen = (
                sa.select(J.id)
                .join(dispatches, D.id == J.dispatch_id)
                .where(J.dispatch_id == dispatch_id, in_state(JobState.SCHEDULED), D.cancelled)
                .order_by(J.id)
                .limit(size)
            )
            return skip_jobs(self._db, tx, dispatch_id, J.id.in_(chosen), CANCELLED, now)

    def take_back(self, dispatch_id: str, job_ids: Sequence[str], reason: str) -> int:
        with self._db.writing() as tx:
            own = (J.dispatch_id == dispatch_id) & J.id.in_(job_ids)
            return skip_jobs(self._db, tx, dispatch_id, own, reason, self._db.now(tx))

    def call_back_chunk(self, dispatch_id: str, longest: timedelta, size: int) -> int:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            row = lock_dispatch(tx, dispatch_id)
            if row is None:
                return 0
            far = sa.select(J.id).where(J.dispatch_id == dispatch_id, in_state(JobState.SCHEDULED))
            if row.own_times:
                far = far.where(_RETRIED)
            chosen = far.where(J.due_at > now + longest).order_by(J.due_at).limit(size)
            update = job_states.update().where(J.id.in_(chosen), in_state(JobState.SCHEDULED))
            called = tx.execute(update.values(due_at=now)).rowcount
            if called:
                make_room(tx, row, now, now)
            return called

    def complete(self, dispatch_id: str) -> DispatchResult | None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            # Lock first and look afterwards, in a statement of its own: a look from the lock's own
            # snapshot misses a job that another transaction has just made scheduled.
            row = lock_dispatch(tx, dispatch_id)
            if row is None:
                return None
            lost = sa.or_(D.cancelled, booked(D.id, *STATES) > 0) & (booked(D.id, "sent", "in_doubt") == 0)
            ended = {"phase": "over", "result": sa.case((lost, "failed"), else_="sent"), "ended_at": now}
            update = (
                dispatches.update()
                .where(D.id == dispatch_id, RUNNING, ~_has_job(JobState.SCHEDULED, JobState.SENDING))
                .values(**ended, awake=False, due_from=None, updated_at=now)
                .returning(D.result)
            )
            result = tx.execute(update).scalar_one_or_none()
            if result is None:
                return None
            body = {"dispatch_id": row.id, "owner_id": row.owner_id, "result": result}
            insert_outbox(tx, now, ended_topic(row.kind), body)
            return DispatchResult(result)


def skip_jobs(
    database: Database,
    tx: Connection,
    dispatch_id: str,
    which: sa.ColumnElement[bool],
    reason: str,
    now: datetime,
) -> int:
    """scheduled → skipped; how many."""
    update = job_states.update().where(which, in_state(JobState.SCHEDULED))
    with counted(database, tx) as tally:
        skipped = tx.execute(update.values(state="skipped", reason=reason, settled_at=now)).rowcount
        tally.move(dispatch_id, JobState.SCHEDULED, JobState.SKIPPED, skipped)
    return skipped


def _has_job(*states: JobState) -> sa.ColumnElement[bool]:
    """Whether a dispatch has a job in one of these states, each of which has an index of its own.

    Not by EXISTS: where PostgreSQL's statistics are from before a mailout was planned, it reads all jobs in
    the state, of all dispatches, into a hash.
    """
    one = sa.select(sa.literal_column("1", sa.Integer)).select_from(job_states).where(J.dispatch_id == D.id)
    one = one.correlate(dispatches).limit(1)
    return sa.or_(*(one.where(in_state(state)).scalar_subquery().is_not(None) for state in states))


def as_dispatch(row: Mapping[Any, Any]) -> Dispatch:
    known = {name: row[name] for name in _FIELDS}
    result = DispatchResult(row["result"]) if row["result"] else None
    return Dispatch(phase=DispatchPhase(row["phase"]), result=result, **known)


def insert_dispatch(
    tx: Connection, dispatch_id: str, tenant_id: TenantId, new: NewDispatch, now: datetime, **changes: Any
) -> str:
    own = {"id": dispatch_id, "tenant_id": tenant_id, "created_at": now, "updated_at": now}
    tx.execute(dispatches.insert().values({**asdict(new), **own, **changes}))
    return dispatch_id


def lock_dispatch(tx: Connection, dispatch_id: str) -> Row[Any] | None:
    """The row, as it is once its lock is ours. Not the strongest lock: see ``arrows.lock_dispatches``."""
    query = sa.select(dispatches).where(D.id == dispatch_id).with_for_update(key_share=True)
    return tx.execute(query).one_or_none()


def make_room(
    tx: Connection, row: Row[Any], due: datetime, now: datetime, *, own_times: bool = False
) -> None:
    """Scheduled jobs come into a dispatch, the first due at ``due``: over → running. Its lock is held."""
    changes: dict[str, Any] = {}
    if row.due_from is None or due < row.due_from:
        changes["due_from"] = due
    if own_times and not row.own_times:
        changes["own_times"] = True
    if row.phase == DispatchPhase.OVER:
        changes |= {"phase": "running", "result": None, "ended_at": None}
    if changes:
        tx.execute(dispatches.update().where(D.id == row.id).values(**changes, updated_at=now))


class PlannedJob(NamedTuple):
    """A job for the statement "plan". ``fields`` and ``own`` are JSON texts."""

    id: str
    recipient: str
    recipient_key: str
    suppression_key: str
    fields: str
    state: str
    reason: str | None
    own: str | None = None


def insert_jobs(
    database: Database, tx: Connection, dispatch: Row[Any], jobs: Sequence[PlannedJob], due: datetime
) -> int:
    """One job a recipient, ever: how many are new. Those without a time of their own are due at ``due``."""
    added = 0
    with counted(database, tx) as tally:
        for state in sorted({job.state for job in jobs}):
            new = _insert_jobs(database, tx, dispatch, [job for job in jobs if job.state == state], due)
            tally.plan(dispatch.id, state, new)
            added += new
    if jobs:
        look_again_behind(tx, jobs[0].id)
    return added


def _insert_jobs(
    database: Database, tx: Connection, dispatch: Row[Any], jobs: Sequence[PlannedJob], due: datetime
) -> int:
    if database.is_sqlite:
        return _insert_by_rows(database, tx, dispatch, jobs, due)
    names = ("ids", "recipients", "keys", "suppression_keys", "fields", "states", "reasons", "owns")
    columns = dict(zip(names, map(text_array, zip(*jobs, strict=True)), strict=True))
    values = {**columns, "tenant": dispatch.tenant_id, "dispatch": dispatch.id, "due": due}
    return tx.exec_driver_sql(database.statement("plan"), values).rowcount


def _insert_by_rows(
    database: Database, tx: Connection, dispatch: Row[Any], jobs: Sequence[PlannedJob], due: datetime
) -> int:
    own = (dispatch.tenant_id, dispatch.id)
    tx.exec_driver_sql(database.statement("plan"), [(job.id, *own, *job[1:5], job.own) for job in jobs])
    # As one JSON text: the driver takes longer for a row than SQLite does.
    states = json.dumps([(job.id, job.state, job.reason, job.own) for job in jobs])
    values = (dispatch.id, database.moment(due), states)
    return tx.exec_driver_sql(database.statement("plan_states"), values).rowcount
