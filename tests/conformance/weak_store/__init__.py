"""The weakest store that the engine is to live with: one row at a time, and listings that lag.

It stands for a database like DynamoDB. There is no transaction over two rows: each write is of one row and
conditional on what was read there, so a verb that is cut off leaves whatever it had written. Listings show a
write some operations later. What the other rooms keep is the memory store's; they meet in the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.adapters.stores.memory.jobs import MemoryJobs
from sendonce.adapters.stores.memory.senders import MemorySenders
from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.domain.engine.jobs import Job
from tests.conformance.weak_store.dispatches import WeakDispatches
from tests.conformance.weak_store.events import WeakEvents
from tests.conformance.weak_store.items import Items
from tests.conformance.weak_store.ledger import WeakLedger
from tests.conformance.weak_store.patience import Patient
from tests.conformance.weak_store.workers import WeakWorkers, WorkerItem

__all__ = ["WeakStore"]

LAG = 7
"""More operations than any verb makes before it looks at a listing."""


class WeakStore(MemoryStore):
    def __init__(
        self,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        soft_bounce_limit: int = 5,
        lag: int = LAG,
    ) -> None:
        super().__init__(now, soft_bounce_limit)
        items = self.items = Items(self.state, lag)
        workers: dict[str, WorkerItem] = {}
        lagging = cast(State, Lagging(self.state, items.list_of(self.state.jobs)))
        late = cast(State, Lagging(self.state, items.late_look_at(self.state.jobs)))
        self.ledger = WeakLedger(self.state, items, lagging, workers)
        self.workers = WeakWorkers(self.state, items, workers)
        self.dispatches = WeakDispatches(self.state, items, lagging)
        self.events = WeakEvents(self.state, items, soft_bounce_limit)
        self.senders = MemorySenders(lagging)
        self.jobs = WeakJobs(late, self.state, workers)

    def with_patience(self) -> WeakStore:
        """The same, asked by somebody who lets a moment pass between two verbs."""
        for name in ("ledger", "workers", "dispatches", "events", "senders"):
            setattr(self, name, Patient(getattr(self, name), self.items))
        return self


class Lagging:
    """The state with jobs as a listing shows them."""

    def __init__(self, state: State, jobs: Callable[[], dict[str, JobRow]]) -> None:
        self._state = state
        self._look = jobs

    @property
    def jobs(self) -> dict[str, JobRow]:
        return self._look()

    def jobs_of(self, dispatch_id: str) -> list[JobRow]:
        return [row for row in self.jobs.values() if row.dispatch_id == dispatch_id]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


class WeakJobs(MemoryJobs):
    """What people look at, a moment later; a job that is asked for by its id is as it was last written."""

    def __init__(self, late: State, state: State, workers: dict[str, WorkerItem]) -> None:
        super().__init__(late)
        self._rows = state
        self._workers = workers

    def _route_of(self, row: JobRow) -> str | None:
        worker = self._workers.get(row.worker_id or "")
        return worker.record.route if worker else None

    def get(self, job_id: str) -> Job | None:
        row = self._rows.jobs.get(job_id)
        return row.as_job() if row else None
