"""Delivery events in the weak store: an event counts as taken in only after its effect."""

from __future__ import annotations

from datetime import datetime

from sendonce.adapters.stores.memory.arrows import change
from sendonce.adapters.stores.memory.events import MemoryEvents
from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.domain.engine.events import DeliveryEvent, EventVerdict
from sendonce.domain.engine.evidence import changes_by_event, judge, never_issued
from tests.conformance.weak_store.items import Items


class WeakEvents(MemoryEvents):
    """Each effect can be had twice without harm, so one that was cut off is made again from the beginning."""

    def __init__(self, state: State, items: Items, soft_bounce_limit: int) -> None:
        super().__init__(state, soft_bounce_limit)
        self._items = items
        self._done: dict[str, str] = {}

    def record(self, event: DeliveryEvent) -> EventVerdict:
        names = (f"id {event.event_id}", f"fact {event.natural_key}")
        if any(self._items.get(self._done, name) for name in names):
            return EventVerdict.DUPLICATE_EVENT
        now = self._state.clock()
        row = self._items.get(self._state.jobs, event.job_id) if event.attempt is not None else None
        verdict = judge(event, row)
        if verdict == EventVerdict.QUARANTINED:
            self._state.halted = self._state.halted or never_issued(event)
        elif row is not None:
            self._items.change(self._state.jobs, row.id, lambda seen: _changed(seen, event, now))
        with self._state.transaction():  # the rest is the other rooms', and theirs to keep
            if not self._seen(event):
                self._keep(event, row, now)
            self._return_canary(event, now)
            self._apply_to_people(event, self._items.get(self._state.jobs, row.id) if row else None, now)
        first = all(self._items.put(self._done, name, None, "done") for name in names)
        return verdict if first else EventVerdict.DUPLICATE_EVENT


def _changed(row: JobRow, event: DeliveryEvent, now: datetime) -> JobRow:
    change(row, changes_by_event(event, row, now))
    return row
