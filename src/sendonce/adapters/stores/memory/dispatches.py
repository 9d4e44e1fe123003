"""Dispatches and letters in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from sendonce.adapters.stores.memory.arrows import move
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
    charged,
    refuse_other_senders,
    result_of,
    woken,
)
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.engine.jobs import JobState, Move
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.errors import NotFound, RefusedByRule


class MemoryDispatches:
    def __init__(self, state: State) -> None:
        self._state = state

    def open(self, tenant_id: TenantId, new: NewDispatch) -> Dispatch:
        with self._state.transaction() as now:
            made = new_dispatch(DispatchId(self._state.new_id(now)), tenant_id, new, now)
            dispatch = replace(made, phase=DispatchPhase.PLANNING, started_at=now)
            until = now + PLANNED_WITHIN
            self._state.dispatches[dispatch.id] = DispatchRow(dispatch, planner=DOOR, planner_until=until)
            return dispatch

    def plan(self, dispatch_id: str, jobs: Sequence[NewJob]) -> int:
        with self._state.transaction() as now:
            entry = self._state.dispatches.get(dispatch_id)
            if entry is None:
                raise NotFound(f"There is no dispatch {dispatch_id}.")
            if entry.dispatch.cancelled:
                raise RefusedByRule(f"Dispatch {dispatch_id} was cancelled, and that is final: plan another.")
            refuse_other_senders(dispatch_id, entry.dispatch.sender_id, jobs)
            known = {row.recipient_key for row in self._state.jobs_of(dispatch_id)}
            # The first of two jobs for one address stays.
            new = {job.recipient.key: job for job in reversed(jobs) if job.recipient.key not in known}
            for job_id, job in zip(_ids(len(new), now), reversed(new.values()), strict=True):
                self._state.jobs[job_id] = new_job_row(job_id, entry.dispatch, job, now)
            entry.planner_until = now + PLANNED_WITHIN
            if new:
                entry.own_times |= any(job.due_at for job in jobs)
                entry.reopen()
            return len(new)

    def run(self, dispatch_id: str) -> bool:
        with self._state.transaction():
            entry = self._in_phase(dispatch_id, DispatchPhase.PLANNING)
            if entry is not None:
                entry.dispatch = replace(entry.dispatch, phase=DispatchPhase.RUNNING)
            return entry is not None

    def abandoned(self) -> Sequence[DispatchId]:
        with self._state.transaction() as now:
            return sorted(
                entry.dispatch.id
                for entry in self._state.dispatches.values()
                if entry.dispatch.phase == DispatchPhase.PLANNING
                and entry.planner == DOOR
                and entry.planner_until
                and entry.planner_until < now
            )

    def get(self, dispatch_id: str) -> Dispatch | None:
        with self._state.transaction():
            entry = self._state.dispatches.get(dispatch_id)
            return entry.dispatch if entry else None

    def _in_phase(self, dispatch_id: str, phase: DispatchPhase) -> DispatchRow | None:
        entry = self._state.dispatches.get(dispatch_id)
        return entry if entry is not None and entry.dispatch.phase == phase else None

    # -- pausing, cancelling, finishing --------------------------------------------------------

    def running(self, after: str, limit: int) -> Sequence[DispatchId]:
        with self._state.transaction():
            dispatches = (entry.dispatch for entry in self._state.dispatches.values())
            ids = sorted(d.id for d in dispatches if d.phase == DispatchPhase.RUNNING and d.id > after)
            return ids[:limit]

    def to_finish(self, *, among: Sequence[DispatchId] = ()) -> Sequence[Dispatch]:  # noqa: ARG002 (all are)
        with self._state.transaction():
            running = (entry.dispatch for entry in self._state.dispatches.values())
            return [
                dispatch
                for dispatch in sorted(running, key=lambda dispatch: dispatch.id)
                if dispatch.phase == DispatchPhase.RUNNING
                and (dispatch.cancelled or not self._scheduled(dispatch.id))
            ]

    def _scheduled(self, dispatch_id: str) -> list[JobRow]:
        return [row for row in self._state.jobs_of(dispatch_id) if row.state == JobState.SCHEDULED]

    def put_off_beyond(self, longest: timedelta, among: Sequence[DispatchId]) -> Sequence[DispatchId]:
        with self._state.transaction() as now:
            running = [e.dispatch for e in self._state.dispatches.values() if not e.dispatch.cancelled]
            ids = sorted(d.id for d in running if d.phase == DispatchPhase.RUNNING and d.id in among)
            return [dispatch_id for dispatch_id in ids if self._put_off_past(dispatch_id, now + longest)]

    def _put_off_past(self, dispatch_id: str, moment: datetime) -> list[JobRow]:
        """A job's first time is from its planning, every later one from a retry."""
        own_times = self._state.dispatches[dispatch_id].own_times
        late = [row for row in self._scheduled(dispatch_id) if row.due_at > moment]
        return [row for row in late if row.attempt or not own_times]

    def set_paused(self, dispatch_id: str, paused: bool) -> bool:
        with self._state.transaction():
            entry = self._state.dispatches.get(dispatch_id)
            known = entry.dispatch if entry else None
            if entry is None or known is None or known.started_at is None or known.cancelled:
                return False
            if known.phase == DispatchPhase.OVER:
                return False
            entry.dispatch = replace(known, paused=paused, reason=known.reason if paused else None)
            entry.awake = False
            return True

    def cancel(self, dispatch_id: str) -> bool:
        with self._state.transaction() as now:
            entry = self._state.dispatches.get(dispatch_id)
            if entry is None or entry.dispatch.cancelled or entry.dispatch.phase == DispatchPhase.OVER:
                return False
            cancelled = replace(entry.dispatch, cancelled=True, reason=CANCELLED)
            if cancelled.started_at is None:
                failed = DispatchResult.FAILED
                cancelled = replace(cancelled, phase=DispatchPhase.OVER, result=failed, ended_at=now)
            elif cancelled.phase == DispatchPhase.PREPARING:
                cancelled = replace(cancelled, phase=DispatchPhase.RUNNING)
            entry.dispatch, entry.awake = cancelled, False
            self._state.audit.append(("operator", "cancel", dispatch_id))
            return True

    def cancel_chunk(self, dispatch_id: str, size: int) -> int:
        with self._state.transaction() as now:
            entry = self._state.dispatches.get(dispatch_id)
            if entry is None or not entry.dispatch.cancelled:
                return 0
            waiting = self._scheduled(dispatch_id)[:size]
            return sum(move(row, Move.SKIP, reason=CANCELLED, settled_at=now) for row in waiting)

    def take_back(self, dispatch_id: str, job_ids: Sequence[str], reason: str) -> int:
        with self._state.transaction() as now:
            named = [row for row in self._state.jobs_of(dispatch_id) if row.id in job_ids]
            return sum(move(row, Move.SKIP, reason=reason, settled_at=now) for row in named)

    def call_back_chunk(self, dispatch_id: str, longest: timedelta, size: int) -> int:
        with self._state.transaction() as now:
            far = self._put_off_past(dispatch_id, now + longest)[:size]
            for row in far:
                row.due_at = now
            return len(far)

    def complete(self, dispatch_id: str) -> DispatchResult | None:
        with self._state.transaction() as now:
            entry = self._in_phase(dispatch_id, DispatchPhase.RUNNING)
            if entry is None:
                return None
            states = {row.state for row in self._state.jobs_of(dispatch_id)}
            result = result_of(states, cancelled=entry.dispatch.cancelled)
            if result is None:
                return None
            ended = replace(entry.dispatch, phase=DispatchPhase.OVER, result=result, ended_at=now)
            entry.dispatch, entry.awake = ended, False
            body = {"dispatch_id": ended.id, "owner_id": ended.owner_id, "result": str(result)}
            self._state.outbox.append((ended.topic, body))
            return result


class MemoryLetters:
    def __init__(self, state: State) -> None:
        self._state = state

    def put(self, tenant_id: TenantId, letter: Letter) -> str:  # noqa: ARG002 (there is no row to mark with it)
        with self._state.transaction() as now:
            return self._state.keep_letter(letter, now)

    def get(self, letter_id: str) -> Letter | None:
        with self._state.transaction():
            return self._state.letters.get(letter_id)


def new_dispatch(dispatch_id: DispatchId, tenant_id: TenantId, new: NewDispatch, now: datetime) -> Dispatch:
    return Dispatch(
        id=dispatch_id,
        tenant_id=tenant_id,
        **asdict(new),
        phase=DispatchPhase.PREPARING,
        result=None,
        paused=False,
        cancelled=False,
        reason=None,
        created_at=now,
        started_at=None,
        ended_at=None,
    )


def in_turn(state: State, due: dict[str, list[JobRow]], sender_id: str) -> list[str]:
    """The dispatches of a sender with due jobs in the order of fair share; those without sleep."""
    own = {key: entry for key, entry in state.dispatches.items() if entry.dispatch.sender_id == sender_id}
    before = {key for key, entry in own.items() if entry.awake and key in due}
    _wake_tenants(state, due, before, sender_id)
    for key, entry in own.items():
        if key in due and key not in before:
            _wake(state, entry, before)
        entry.awake = key in due

    def order(key: str) -> tuple[float, str, float, str]:
        entry = state.dispatches[key]
        tenant_id = entry.dispatch.tenant_id
        return state.tenant_turns[sender_id, tenant_id], tenant_id, entry.served, key

    return sorted(due, key=order)


def _wake(state: State, entry: DispatchRow, awake: set[str]) -> None:
    whose = (entry.dispatch.tenant_id, entry.dispatch.sender_id)
    every = state.dispatches.values()
    own = [e for e in every if (e.dispatch.tenant_id, e.dispatch.sender_id) == whose]
    front = [e.served for e in own if e.dispatch.id in awake]
    asleep = [e.served for e in own if e.dispatch.phase == DispatchPhase.RUNNING]
    entry.served = woken(entry.served, front, asleep)


def _wake_tenants(state: State, due: dict[str, list[JobRow]], awake: set[str], sender_id: str) -> None:
    turns = {tenant: served for (sender, tenant), served in state.tenant_turns.items() if sender == sender_id}
    of_awake = {state.dispatches[key].dispatch.tenant_id for key in awake}
    front = [turns[tenant_id] for tenant_id in of_awake]
    for tenant_id in {state.dispatches[key].dispatch.tenant_id for key in due} - of_awake:
        start = woken(turns.get(tenant_id, 0.0), front, list(turns.values()))
        state.tenant_turns[sender_id, tenant_id] = start


def charge(state: State, dispatch_id: str, *, tenant: bool) -> None:
    entry = state.dispatches[dispatch_id]
    entry.served = charged(entry.served, entry.dispatch.weight)
    if tenant:
        place = (entry.dispatch.sender_id, entry.dispatch.tenant_id)
        weight = state.tenant_weights.get(entry.dispatch.tenant_id, 1)
        state.tenant_turns[place] = charged(state.tenant_turns[place], weight)


def _ids(count: int, now: datetime) -> list[str]:
    return list(time_ordered_ids(count, int(now.timestamp() * 1000)))


def new_job_row(job_id: str, dispatch: Dispatch, job: NewJob, now: datetime) -> JobRow:
    return JobRow(
        job_id,
        dispatch.tenant_id,
        dispatch.id,
        job.recipient.text,
        job.recipient.key,
        JobState.SCHEDULED,
        job.due_at or now,
        dict(job.fields),
        letter_id=job.letter_id,
        thread=asdict(job.thread) if job.thread else None,
        priority=job.priority,
    )
