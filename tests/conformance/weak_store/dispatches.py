"""Dispatches of the weak store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sendonce.adapters.stores.memory.arrows import move
from sendonce.adapters.stores.memory.dispatches import MemoryDispatches, new_dispatch, new_job_row
from sendonce.adapters.stores.memory.state import DispatchRow, JobRow, State
from sendonce.domain.engine.dispatches import (
    CANCELLED,
    DOOR,
    PLANNED_WITHIN,
    Dispatch,
    DispatchPhase,
    DispatchResult,
    NewDispatch,
    NewJob,
    refuse_other_senders,
    result_of,
)
from sendonce.domain.engine.jobs import JobState, Move
from sendonce.domain.engine.tenants import TenantId
from sendonce.errors import NotFound, RefusedByRule
from tests.conformance.weak_store.items import Items

Change = Callable[[Dispatch], Dispatch | None]


def reopen(items: Items, state: State, dispatch_id: str) -> None:
    """Scheduled jobs come in."""
    items.change(state.dispatches, dispatch_id, _reopened)


def _reopened(entry: DispatchRow) -> DispatchRow | None:
    if entry.dispatch.phase != DispatchPhase.OVER:
        return None
    entry.reopen()
    return entry


class WeakDispatches(MemoryDispatches):
    """``to_finish``, ``abandoned`` and ``put_off_beyond`` are the memory store's, over listings that lag."""

    def __init__(self, state: State, items: Items, lagging: State) -> None:
        super().__init__(lagging)
        self._rows = state
        self._items = items
        self._recipients: dict[tuple[str, str], str] = {}

    def open(self, tenant_id: TenantId, new: NewDispatch) -> Dispatch:
        now = self._rows.clock()
        made = new_dispatch(self._rows.new_id(now), tenant_id, new, now)
        dispatch = replace(made, phase=DispatchPhase.PLANNING, started_at=now)
        entry = DispatchRow(dispatch, planner=DOOR, planner_until=now + PLANNED_WITHIN)
        self._items.put(self._rows.dispatches, dispatch.id, None, entry)
        return dispatch

    def plan(self, dispatch_id: str, jobs: Sequence[NewJob]) -> int:
        entry = self._items.get(self._rows.dispatches, dispatch_id)
        if entry is None:
            raise NotFound(f"There is no dispatch {dispatch_id}.")
        if entry.dispatch.cancelled:
            raise RefusedByRule(f"Dispatch {dispatch_id} was cancelled, and that is final: plan another.")
        refuse_other_senders(dispatch_id, entry.dispatch.sender_id, jobs)
        self._items.change(self._rows.dispatches, dispatch_id, lambda seen: self._touched(seen, jobs))
        added = sum(self._plan_one(entry.dispatch, job) for job in jobs)
        if added:
            reopen(self._items, self._rows, dispatch_id)
        return added

    def _touched(self, entry: DispatchRow, jobs: Sequence[NewJob]) -> DispatchRow:
        own_times = entry.own_times or any(job.due_at for job in jobs)
        return replace(entry, planner_until=self._rows.clock() + PLANNED_WITHIN, own_times=own_times)

    def _plan_one(self, dispatch: Dispatch, job: NewJob) -> bool:
        """A recipient's place holds the job's id before the job is there: whoever was cut off in between
        makes that very job when it plans again."""
        now = self._rows.clock()
        place = (dispatch.id, job.recipient.key)
        known = self._items.get(self._recipients, place)
        if known is None:
            known = self._rows.new_id(now)
            if not self._items.put(self._recipients, place, None, known):
                return False
        return self._items.put(self._rows.jobs, known, None, new_job_row(known, dispatch, job, now))

    def run(self, dispatch_id: str) -> bool:
        return self._change(dispatch_id, _running) is not None

    def get(self, dispatch_id: str) -> Dispatch | None:
        entry = self._items.get(self._rows.dispatches, dispatch_id)
        return entry.dispatch if entry else None

    def set_paused(self, dispatch_id: str, paused: bool) -> bool:
        def pause(known: Dispatch) -> Dispatch | None:
            if known.started_at is None or known.cancelled or known.phase == DispatchPhase.OVER:
                return None
            return replace(known, paused=paused, reason=known.reason if paused else None)

        return self._change(dispatch_id, pause) is not None

    def cancel(self, dispatch_id: str) -> bool:
        now = self._rows.clock()
        if self._change(dispatch_id, lambda known: _cancelled(known, now)) is None:
            return False
        self._items.append(self._rows.audit, ("operator", "cancel", dispatch_id))
        return True

    def cancel_chunk(self, dispatch_id: str, size: int) -> int:
        now = self._rows.clock()
        dispatch = self.get(dispatch_id)
        if dispatch is None or not dispatch.cancelled:
            return 0

        def skip(row: JobRow) -> JobRow | None:
            return row if move(row, Move.SKIP, reason=CANCELLED, settled_at=now) else None

        waiting = self._scheduled(dispatch_id)[:size]
        return sum(self._items.change(self._rows.jobs, row.id, skip) is not None for row in waiting)

    def take_back(self, dispatch_id: str, job_ids: Sequence[str], reason: str) -> int:
        now = self._rows.clock()

        def skip(row: JobRow) -> JobRow | None:
            own = row.dispatch_id == dispatch_id
            return row if own and move(row, Move.SKIP, reason=reason, settled_at=now) else None

        return sum(self._items.change(self._rows.jobs, it, skip) is not None for it in job_ids)

    def call_back_chunk(self, dispatch_id: str, longest: timedelta, size: int) -> int:
        now = self._rows.clock()

        def call_back(row: JobRow) -> JobRow | None:
            far = row.state == JobState.SCHEDULED and row.due_at > now + longest
            row.due_at = now
            return row if far else None

        far = self._put_off_past(dispatch_id, now + longest)[:size]
        return sum(self._items.change(self._rows.jobs, row.id, call_back) is not None for row in far)

    def complete(self, dispatch_id: str) -> DispatchResult | None:
        """The entry for the door is a part of the dispatch's row, so it is there if the end is."""
        seen = self._items.get(self._rows.dispatches, dispatch_id)
        if seen is None or seen.dispatch.phase != DispatchPhase.RUNNING:
            return None
        states = {row.state for row in self._state.jobs_of(dispatch_id)}
        result = result_of(states, cancelled=seen.dispatch.cancelled)
        if result is None:
            return None
        now = self._rows.clock()
        ended = replace(seen.dispatch, phase=DispatchPhase.OVER, result=result, ended_at=now)
        if not self._items.put(
            self._rows.dispatches, dispatch_id, seen, replace(seen, dispatch=ended, awake=False)
        ):
            return None
        body = {"dispatch_id": ended.id, "owner_id": ended.owner_id, "result": str(result)}
        self._rows.outbox.append((ended.topic, body))
        return result

    def _change(self, dispatch_id: str, how: Change) -> DispatchRow | None:
        def changed(entry: DispatchRow) -> DispatchRow | None:
            dispatch = how(entry.dispatch)
            return replace(entry, dispatch=dispatch, awake=False) if dispatch else None

        return self._items.change(self._rows.dispatches, dispatch_id, changed)


def _running(known: Dispatch) -> Dispatch | None:
    planned = known.phase == DispatchPhase.PLANNING
    return replace(known, phase=DispatchPhase.RUNNING) if planned else None


def _cancelled(known: Dispatch, now: datetime) -> Dispatch | None:
    if known.cancelled or known.phase == DispatchPhase.OVER:
        return None
    cancelled = replace(known, cancelled=True, reason=CANCELLED)
    if cancelled.started_at is None:
        return replace(cancelled, phase=DispatchPhase.OVER, result=DispatchResult.FAILED, ended_at=now)
    if cancelled.phase == DispatchPhase.PREPARING:
        return replace(cancelled, phase=DispatchPhase.RUNNING)
    return cancelled
