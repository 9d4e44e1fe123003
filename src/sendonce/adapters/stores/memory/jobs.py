"""Looking at the ledger in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.domain.engine.doubts import NEAR, Doubt
from sendonce.domain.engine.ids import prefix_range
from sendonce.domain.engine.jobs import Books, Job, JobState
from sendonce.domain.engine.reports import TROUBLES, RecipientOutcome
from sendonce.domain.engine.sent_folder import AcceptedNear
from sendonce.domain.people.suppressions import BY_LETTER, SuppressionReason


class MemoryJobs:
    def __init__(self, state: State) -> None:
        self._state = state

    def books(self, dispatch_id: str) -> Books:
        with self._state.transaction():
            rows = self._state.jobs_of(dispatch_id)
            return Books(
                planned=len(rows),
                **Counter(str(row.state) for row in rows),
                delivered=sum(row.delivered_at is not None for row in rows),
                bounced=sum(row.bounced_at is not None for row in rows),
                complained=sum(row.complained_at is not None for row in rows),
                rejected=sum(row.rejected_at is not None for row in rows),
                duplicates=sum(row.duplicate_at is not None for row in rows),
            )

    def count_by_state(self) -> dict[str, int]:
        with self._state.transaction():
            return dict(Counter(str(row.state) for row in self._state.jobs.values()))

    def count_unsubscribed(self, dispatch_id: str) -> int:
        with self._state.transaction():
            sent = [row for row in self._state.jobs_of(dispatch_id) if row.state == JobState.SENT]
            found = [(row, self._state.suppression_of(row.tenant_id, row.recipient_key)) for row in sent]
            return sum(
                s is not None
                and s.reason == SuppressionReason.UNSUBSCRIBED
                and (s.note or "").startswith(BY_LETTER)
                and row.claimed_at is not None
                and s.created_at >= row.claimed_at
                for row, s in found
            )

    def troubles(
        self, dispatch_id: str, limit: int, *, among: Sequence[str] | None = None
    ) -> tuple[Sequence[Job], int]:
        with self._state.transaction():
            rows = [
                row
                for row in sorted(self._state.jobs_of(dispatch_id), key=lambda row: row.id)
                if self._outcome(row).is_error and (among is None or row.id in among)
            ]
            return [row.as_job() for row in rows[:limit]], len(rows)

    def handed_over_since(self, moment: datetime) -> int:
        with self._state.transaction():
            claimed = [row.claimed_at for row in self._state.jobs.values() if row.claimed_at is not None]
            launched = [canary.sent_at for canary in self._state.canaries.values()]
            return sum(at > moment for at in claimed + launched)

    def oldest_due(self, sender_id: str | None = None) -> datetime | None:
        with self._state.transaction():
            waiting = [
                row.due_at
                for row in self._state.jobs.values()
                if row.state == JobState.SCHEDULED
                and self._state.claimable(row)
                and sender_id in (None, self._state.dispatches[row.dispatch_id].dispatch.sender_id)
            ]
            return min(waiting, default=None)

    def next_due(self, dispatch_id: str) -> Job | None:
        with self._state.transaction():
            rows = [row for row in self._state.jobs_of(dispatch_id) if row.state == JobState.SCHEDULED]
            first = min(rows, key=lambda row: (row.due_at, row.id), default=None)
            return first.as_job() if first else None

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
        with self._state.transaction():
            rows = [
                row
                for row in sorted(self._state.jobs.values(), key=lambda row: row.id)
                if row.id > after
                and (not states or row.state in states)
                and dispatch_id in (None, row.dispatch_id)
                and worker_id in (None, row.worker_id)
                and code in (None, row.code)
            ]
            return [row.as_job() for row in rows[:limit]]

    def outcomes(
        self, dispatch_id: str, *, after: str = "", limit: int = 5000, only_errors: bool = False
    ) -> Sequence[RecipientOutcome]:
        with self._state.transaction():
            rows = sorted(self._state.jobs_of(dispatch_id), key=lambda row: row.recipient_key)
            found = [self._outcome(row) for row in rows if row.recipient_key > after]
            return [row for row in found if row.is_error or not only_errors][:limit]

    def _outcome(self, row: JobRow) -> RecipientOutcome:
        named = {name: getattr(row, name) for name in RecipientOutcome._fields if hasattr(row, name)}
        found = RecipientOutcome(key=row.recipient_key, attempts=row.attempt, **named)
        told = [
            event for event, own_id, _ in self._state.events if own_id == row.id and event.kind in TROUBLES
        ]
        if not told:
            return found
        last = max(told, key=lambda event: event.occurred_at)
        return found._replace(code=last.code, reason=last.reason)

    def accepted_near(self, doubt: Doubt, sender_id: str, limit: int) -> AcceptedNear:
        assert doubt.claimed_at is not None
        moment = doubt.claimed_at
        with self._state.transaction():
            near = [
                (row.claimed_at, row.id)
                for row in self._state.jobs.values()
                if self._is_unheard(row, doubt.route, sender_id)
                and row.claimed_at is not None
                and abs(row.claimed_at - moment) <= NEAR
            ]
        before = sorted((each for each in near if each[0] <= moment), reverse=True)
        after = sorted(each for each in near if each[0] > moment)
        return AcceptedNear([job for _, job in before[:limit]], [job for _, job in after[:limit]])

    def _is_unheard(self, row: JobRow, route: str | None, sender_id: str) -> bool:
        if row.state != JobState.SENT or row.accepted_attempt is None or row.send_event_at is not None:
            return False
        own = self._state.dispatches[row.dispatch_id].dispatch.sender_id == sender_id
        return own and self._route_of(row) == route

    def _route_of(self, row: JobRow) -> str | None:
        worker = self._state.workers.get(row.worker_id or "")
        return worker[0].route if worker else None

    def with_prefix(self, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        with self._state.transaction():
            return sorted(job_id for job_id in self._state.jobs if first <= job_id <= last)[:limit]

    def get(self, job_id: str) -> Job | None:
        with self._state.transaction():
            row = self._state.jobs.get(job_id)
            return row.as_job() if row else None
