"""Workers, their shares of the sending rate, and canaries, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sendonce.adapters.stores.memory.state import Canary, State
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.pacing import PERMIT_GRACE, PERMIT_LEASE, fair_share
from sendonce.domain.engine.workers import Pulse, WorkerRecord, WorkerStatus
from sendonce.errors import RefusedByRule


class MemoryWorkers:
    def __init__(self, state: State) -> None:
        self._state = state

    def register(self, worker: WorkerRecord) -> None:
        with self._state.transaction() as now:
            self._state.workers[worker.id] = (replace(worker, started_at=now, seen_at=now), None)

    def end(self, worker_id: str, how: str) -> None:
        with self._state.transaction() as now:
            jobs = self._state.jobs.values()
            count = sum(row.state == JobState.SENDING and row.worker_id == worker_id for row in jobs)
            if count:
                raise RefusedByRule(
                    f"Worker {worker_id} still owns {count} jobs: settle them before it ends."
                )
            sign_off(self._state, worker_id, how, now)

    def open(self) -> Sequence[WorkerRecord]:
        with self._state.transaction():
            return [worker for worker, end in self._state.workers.values() if end is None]

    def see(self, worker_id: str, pulse: Pulse) -> None:
        with self._state.transaction() as now:
            if worker_id in self._state.workers:
                worker, end = self._state.workers[worker_id]
                self._state.workers[worker_id] = (replace(worker, seen_at=now, **pulse._asdict()), end)

    def find(self, worker_id: str) -> WorkerStatus | None:
        with self._state.transaction():
            return self._status(worker_id) if worker_id in self._state.workers else None

    def statuses(self, *, ended: int = 0) -> Sequence[WorkerStatus]:
        with self._state.transaction():
            every = [self._status(worker_id) for worker_id in self._state.workers]
            over = [status for status in every if status.ended_at is not None]
            return [s for s in every if s.ended_at is None] + over[: -ended - 1 : -1]

    def _status(self, worker_id: str) -> WorkerStatus:
        record, end = self._state.workers[worker_id]
        sending = sum(
            row.state == JobState.SENDING and row.worker_id == worker_id for row in self._state.jobs.values()
        )
        return WorkerStatus(record, sending, self._state.clock() if end else None, end)

    def claims_of(self, worker_ids: Sequence[str]) -> dict[str, int]:
        with self._state.transaction():
            known = [worker_id for worker_id in worker_ids if worker_id in self._state.workers]
            return {each: self._state.claim_counts.get(each, (0, ""))[0] for each in known}


def sign_off(state: State, worker_id: str, how: str, now: datetime) -> None:
    """The worker is over, and its permits and its planning return."""
    if worker_id in state.workers:
        state.workers[worker_id] = (state.workers[worker_id][0], how)
    for (key, holder), (permits, expires) in state.permits.items():
        if holder == worker_id:
            state.permits[key, holder] = (permits, min(expires, now))
    for entry in state.dispatches.values():
        if entry.planner == worker_id:
            entry.planner = None


class MemoryPermits:
    def __init__(self, state: State) -> None:
        self._state = state

    def renew(self, key: str, worker_id: str, rate: int, held: int) -> int:
        with self._state.transaction() as now:
            others = self._others(key, worker_id, now)
            may_hold = fair_share(rate, worker_id, others, held)
            expires = now + timedelta(seconds=PERMIT_LEASE)
            self._state.permits[key, worker_id] = (max(may_hold, held), expires)
            return may_hold

    def _others(self, key: str, worker_id: str, now: datetime) -> dict[str, int]:
        """What the others hold: a lease that ended counts for the grace time."""
        oldest = now - timedelta(seconds=PERMIT_GRACE)
        return {
            holder: permits
            for (of_key, holder), (permits, expires) in self._state.permits.items()
            if of_key == key and holder != worker_id and expires >= oldest
        }

    def release(self, key: str, worker_id: str) -> None:
        with self._state.transaction() as now:
            if (key, worker_id) in self._state.permits:
                permits, _ = self._state.permits[key, worker_id]
                self._state.permits[key, worker_id] = (permits, now)


class MemoryCanaries:
    def __init__(self, state: State) -> None:
        self._state = state

    def launch(self, canary_id: str, route: str) -> None:
        with self._state.transaction() as now:
            self._state.canaries[canary_id] = Canary(route, now)

    def accepted(self, canary_id: str, message_id: str) -> None:
        with self._state.transaction():
            if canary_id in self._state.canaries:
                self._state.canaries[canary_id].message_id = message_id

    def last(self, route: str) -> tuple[datetime, bool] | None:
        with self._state.transaction():
            own = [c for c in self._state.canaries.values() if c.route == route]
            accepted = [c for c in own if c.message_id is not None]
            newest = max(accepted, key=lambda c: c.sent_at, default=None)
            return (newest.sent_at, newest.event_at is not None) if newest else None
