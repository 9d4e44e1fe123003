"""Workers of the weak store: what a worker has claimed stands in its own row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.adapters.stores.memory.workers import sign_off
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.workers import Pulse, WorkerRecord, WorkerRow, WorkerStatus
from sendonce.errors import RefusedByRule
from sendonce.ports.engine import JobRef
from tests.conformance.weak_store.items import Items


@dataclass(frozen=True, slots=True)
class WorkerItem:
    """``held`` names every attempt before it is claimed: whoever buries the worker misses none, whatever the
    listings show. Those that it did not get, or has settled, are told by the rows of their jobs."""

    record: WorkerRecord
    end: str | None = None
    claims: int = 0
    token: str = ""
    held: tuple[JobRef, ...] = ()

    def as_row(self) -> WorkerRow:
        return WorkerRow(self.claims, self.token, self.end)


def still_sending(items: Items, jobs: dict[str, JobRow], worker_id: str, item: WorkerItem) -> list[JobRef]:
    found = []
    for job_id, attempt in item.held:
        row = items.get(jobs, job_id)
        own = row is not None and (row.attempt, row.worker_id) == (attempt, worker_id)
        if row is not None and own and row.state == JobState.SENDING:
            found.append((job_id, attempt))
    return sorted(found)


class WeakWorkers:
    def __init__(self, state: State, items: Items, workers: dict[str, WorkerItem]) -> None:
        self._state = state
        self._items = items
        self._workers = workers
        self._listed = items.list_of(workers)
        self._seen_late = items.late_look_at(workers)

    def register(self, worker: WorkerRecord) -> None:
        now = self._state.clock()
        record = replace(worker, started_at=now, seen_at=now)
        self._items.put(self._workers, worker.id, None, WorkerItem(record))

    def end(self, worker_id: str, how: str) -> None:
        while (item := self._items.get(self._workers, worker_id)) is not None and item.end is None:
            count = len(still_sending(self._items, self._state.jobs, worker_id, item))
            if count:
                raise RefusedByRule(
                    f"Worker {worker_id} still owns {count} jobs: settle them before it ends."
                )
            if self._items.put(self._workers, worker_id, item, replace(item, end=how)):
                sign_off(self._state, worker_id, how, self._state.clock())

    def open(self) -> Sequence[WorkerRecord]:
        return [item.record for item in self._listed().values() if item.end is None]

    def see(self, worker_id: str, pulse: Pulse) -> None:
        now = self._state.clock()
        self._items.change(
            self._workers,
            worker_id,
            lambda item: replace(item, record=replace(item.record, seen_at=now, **pulse._asdict())),
        )

    def claims_of(self, worker_ids: Sequence[str]) -> dict[str, int]:
        known = {each: self._items.get(self._workers, each) for each in worker_ids}
        return {each: item.claims for each, item in known.items() if item is not None}

    # -- for people ----------------------------------------------------------------------------

    def find(self, worker_id: str) -> WorkerStatus | None:
        item = self._items.get(self._workers, worker_id)
        return self._status(item) if item is not None else None

    def statuses(self, *, ended: int = 0) -> Sequence[WorkerStatus]:
        every = [self._status(item) for item in self._seen_late().values()]
        over = [status for status in every if status.ended_at is not None]
        return [status for status in every if status.ended_at is None] + over[: -ended - 1 : -1]

    def _status(self, item: WorkerItem) -> WorkerStatus:
        sending = still_sending(self._items, self._state.jobs, item.record.id, item)
        return WorkerStatus(item.record, len(sending), self._state.clock() if item.end else None, item.end)
