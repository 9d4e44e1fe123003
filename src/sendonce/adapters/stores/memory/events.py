"""Delivery events in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from sendonce.adapters.stores.memory.arrows import change
from sendonce.adapters.stores.memory.people import lower_status, suppress
from sendonce.adapters.stores.memory.soft_bounces import SoftBounces
from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.events import (
    MOST_UNREADABLE,
    DeliveryEvent,
    EventKind,
    EventVerdict,
    RawEvent,
    UnreadableEvent,
)
from sendonce.domain.engine.evidence import changes_by_event, judge, never_issued
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.consequences import Denial, SoftNews, consequence_of
from sendonce.domain.people.privacy import is_erased


class MemoryEvents:
    def __init__(self, state: State, soft_bounce_limit: int) -> None:
        self._state = state
        self._soft_bounces = SoftBounces(state, soft_bounce_limit)

    def record(self, event: DeliveryEvent) -> EventVerdict:
        with self._state.transaction() as now:
            if self._seen(event):
                return EventVerdict.DUPLICATE_EVENT
            row = self._state.jobs.get(event.job_id or "") if event.attempt is not None else None
            verdict = judge(event, row)
            self._keep(event, row, now)
            self._return_canary(event, now)
            if verdict == EventVerdict.QUARANTINED:
                self._state.halted = self._state.halted or never_issued(event)
            elif row is not None:
                change(row, changes_by_event(event, row, now))
            self._apply_to_people(event, row, now)
            return verdict

    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        with self._state.transaction():
            return [self.record(event) for event in events]

    def _seen(self, event: DeliveryEvent) -> bool:
        return any(
            event.event_id == known.event_id or event.natural_key == known.natural_key
            for known, _, _ in self._state.events
        )

    def _keep(self, event: DeliveryEvent, row: JobRow | None, now: datetime) -> None:
        if row is not None and is_erased(row.recipient):
            event = replace(event, recipients=(row.recipient,), destinations=(), raw={}, reason=None)
        self._state.events.append((event, row.id if row else None, now))

    def _return_canary(self, event: DeliveryEvent, now: datetime) -> None:
        canary = self._state.canaries.get(event.canary or "")
        if canary is not None and event.kind == EventKind.SENT:
            canary.event_at = canary.event_at or now

    def _apply_to_people(self, event: DeliveryEvent, row: JobRow | None, now: datetime) -> None:
        told = consequence_of(event, row)
        if told is None:
            return
        if isinstance(told.news, Denial):
            self._deny(told.scope, told.addresses, told.news, now)
        elif row is not None and told.news is SoftNews.CAME_BACK:
            self._soft_bounces.came_back(row, now)
        elif row is not None:
            self._soft_bounces.delivered(row, now)

    def _deny(self, scope: TenantId, addresses: Iterable[Address], denial: Denial, now: datetime) -> None:
        for address in addresses:
            if denial.bounce:
                self._soft_bounces.outweigh(scope, address.key, denial.note)
            suppress(self._state, scope, address, denial.reason, denial.note, now)
            lower_status(self._state, scope, address.key, denial.status, now, denial.bounce)

    def keep_unreadable(self, event: UnreadableEvent) -> bool:
        with self._state.transaction() as now:
            kept = self._state.unreadable
            if any(event.event_id == each.event_id for each in kept):
                return False
            kept.append(replace(event, received_at=now))
            del kept[:-MOST_UNREADABLE]
            return True

    def unreadable(self, limit: int = 100) -> Sequence[UnreadableEvent]:
        with self._state.transaction():
            return self._state.unreadable[::-1][:limit]

    def count_unreadable(self) -> int:
        with self._state.transaction():
            return len(self._state.unreadable)

    def raw_before(self, moment: datetime, limit: int) -> Sequence[RawEvent]:
        with self._state.transaction():
            numbered = list(enumerate(self._state.events))[self._state.events_archived :][:limit]
            return [
                RawEvent(str(number), event.event_id, event.kind, job_id, received_at, event.raw)
                for number, (event, job_id, received_at) in numbered
                if received_at < moment
            ]

    def drop_raw(self, events: Sequence[RawEvent]) -> bool:
        with self._state.transaction():
            if int(events[0].id) != self._state.events_archived:
                return False
            for dropped in events:
                event, job_id, received_at = self._state.events[int(dropped.id)]
                self._state.events[int(dropped.id)] = (replace(event, raw={}), job_id, received_at)
            self._state.events_archived += len(events)
            return True

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[DeliveryEvent]:
        with self._state.transaction():
            newest_first = reversed(self._state.events)
            # Of the names of a letter only the first recipient is kept, and a job id that is known here.
            kept = [
                replace(event, job_id=own_id, recipients=event.recipients[:1], destinations=(), canary=None)
                for event, own_id, _ in newest_first
                if job_id in (None, own_id)
            ]
            return kept[:limit]
