"""Requests to a search provider on SQL: taken under a lease, settled once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import serp_operations, serp_queries
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.prospecting.quotas import spend, spent, take_permits
from sendonce.adapters.stores.sql.prospecting.serp_results import write_results
from sendonce.domain.prospecting.quotas import Limit
from sendonce.domain.prospecting.search_answers import SerpResult
from sendonce.domain.prospecting.search_policy import SUBMIT_LEASE, WORK_LEASE
from sendonce.domain.prospecting.searches import (
    POLLING,
    SUBMITTING,
    Batch,
    Budget,
    Change,
    Operation,
    OperationState,
)

O, Q = serp_operations.c, serp_queries.c  # noqa: E741
_FIELDS = tuple(f.name for f in fields(Operation))
_READ = sa.select(*(O[name] for name in _FIELDS if name in O), Q.text, Q.region_code)


class SqlSearchOperations:
    def __init__(self, database: Database) -> None:
        self._db = database

    def begin_submits(
        self, worker: str, most: int, limits: Sequence[Limit], budget: Budget, now: datetime
    ) -> Batch:
        with self._db.writing() as tx:
            due = _due(tx, OperationState.QUEUED, most, now)
            due += _due(tx, OperationState.UNKNOWN, most - len(due), now)
            if not due:
                return Batch(())
            affordable = budget.affords(spent(tx, budget))
            if affordable == 0:
                return Batch((), out_of_money=True)
            wanted = min(len(due), affordable or len(due))
            permits = take_permits(tx, self._db, SUBMITTING, wanted, limits, now)
            taken = due[: permits.granted]
            if taken:
                spend(tx, self._db, budget, len(taken))
            marks = {"state": OperationState.SUBMITTING, "submits": O.submits + 1, "submitted_at": now}
            return Batch(_take(tx, taken, worker, now, SUBMIT_LEASE, marks), permits.wait)

    def overdue_submits(self, most: int, now: datetime) -> Sequence[Operation]:
        with self._db.reading() as tx:
            late = _open(OperationState.SUBMITTING).where(O.due_at <= now).limit(most)
            return _operations(tx, list(tx.execute(late).scalars()))

    def begin_polls(self, worker: str, most: int, limits: Sequence[Limit], now: datetime) -> Batch:
        with self._db.writing() as tx:
            due = _due(tx, OperationState.SUBMITTED, most, now)
            if not due:
                return Batch(())
            permits = take_permits(tx, self._db, POLLING, len(due), limits, now)
            marks = {"polls": O.polls + 1}
            return Batch(_take(tx, due[: permits.granted], worker, now, WORK_LEASE, marks), permits.wait)

    def begin_ingests(self, worker: str, most: int, now: datetime) -> Sequence[Operation]:
        with self._db.writing() as tx:
            due = _due(tx, OperationState.FETCHED, most, now)
            return _take(tx, due, worker, now, WORK_LEASE, {})

    def release(self, worker: str, now: datetime) -> int:
        # One that only waits for its next poll, which may be hours away, is in nobody's hands.
        leased = (O.due_at > now) & (O.due_at <= now + WORK_LEASE)
        held = O.state.in_(_HELD) & O.settled_at.is_(None) & (O.leased_by == worker)
        with self._db.writing() as tx:
            free = serp_operations.update().where(held, leased).values(due_at=now, updated_at=now)
            return tx.execute(free).rowcount

    def settle(self, changes: Sequence[Change], now: datetime, budget: Budget | None = None) -> int:
        settled = refunds = 0
        with self._db.writing() as tx:
            for change in changes:
                if _settle(tx, change, now):
                    settled += 1
                    refunds += change.refunded
            if refunds and budget is not None:
                spend(tx, self._db, budget, -refunds)
        return settled

    def keep_results(self, found: Sequence[tuple[Operation, Sequence[SerpResult]]], now: datetime) -> None:
        with self._db.writing() as tx:
            write_results(tx, self._db, found, now)

    def next_due(self) -> datetime | None:
        with self._db.reading() as tx:
            firsts = [tx.execute(_first(state)).scalar_one_or_none() for state in _MOVING]
        return min((due for due in firsts if due is not None), default=None)


_HELD = (OperationState.SUBMITTING, OperationState.SUBMITTED, OperationState.FETCHED)
_MOVING = (
    *(OperationState.QUEUED, OperationState.SUBMITTING, OperationState.SUBMITTED),
    *(OperationState.FETCHED, OperationState.UNKNOWN),
)


def _open(state: OperationState) -> sa.Select[Any]:
    """Along their index: the state is spelled out, for only so does SQLite know that it will do."""
    here = (O.state == sa.literal_column(f"'{state}'")) & O.settled_at.is_(None)
    return sa.select(O.id).where(here).order_by(O.due_at, O.id)


def _first(state: OperationState) -> sa.Select[Any]:
    return _open(state).with_only_columns(O.due_at).limit(1)


def _due(tx: Connection, state: OperationState, most: int, now: datetime) -> list[str]:
    if most <= 0:
        return []
    due = _open(state).where(O.due_at <= now).limit(most).with_for_update(skip_locked=True)
    return list(tx.execute(due).scalars())


def _take(
    tx: Connection, ids: Sequence[str], worker: str, now: datetime, lease: timedelta, marks: dict[str, Any]
) -> list[Operation]:
    if not ids:
        return []
    own = {"leased_by": worker, "due_at": now + lease, "updated_at": now}
    tx.execute(serp_operations.update().where(O.id.in_(ids)).values(**own, **marks))
    return _operations(tx, ids)


def _operations(tx: Connection, ids: Sequence[str]) -> list[Operation]:
    joined = _READ.join_from(serp_operations, serp_queries, O.query_id == Q.id).where(O.id.in_(ids))
    rows = tx.execute(joined.order_by(O.id))
    return [Operation(**{**row._mapping, "state": OperationState(row.state)}) for row in rows]


def _settle(tx: Connection, change: Change, now: datetime) -> bool:
    """The same turn: the same state, submission and holder. A late outcome may find it given up already."""
    before = change.operation
    turn = (O.id == before.id) & (O.submits == before.submits) & (O.leased_by == before.leased_by)
    states = [before.state]
    if before.state is OperationState.SUBMITTING and change.state is not OperationState.UNKNOWN:
        states.append(OperationState.UNKNOWN)
    ended = change.due_at is None
    values = {
        "state": change.state,
        "provider_id": change.provider_id or before.provider_id,
        "answer_place": change.answer_place or before.answer_place,
        "results": change.results,
        "code": change.code or None,
        "reason": change.reason or None,
        "losses": change.losses,
        "failures": change.failures,
        "due_at": now if ended else change.due_at,
        "settled_at": now if ended else None,
        "updated_at": now,
    }
    changed = tx.execute(serp_operations.update().where(turn, O.state.in_(states)).values(values))
    if changed.rowcount and change.state is OperationState.DONE and not change.results:
        _end_later_pages(tx, before, now)
    return bool(changed.rowcount)


def _end_later_pages(tx: Connection, empty: Operation, now: datetime) -> None:
    """After a page without results there are no more: nothing is paid for asking."""
    later = (O.query_id == empty.query_id) & (O.page > empty.page) & (O.state == OperationState.QUEUED)
    reason = f"Page {empty.page + 1} had no results, so this one was not asked for."
    done = {"state": OperationState.DONE, "results": 0, "reason": reason, "settled_at": now}
    tx.execute(serp_operations.update().where(later).values(**done, updated_at=now))
