"""Events that came and could not be read: what they tell may be missing in the books."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import Check, count_of, warning


class UnreadableEventsProbe:
    name = "events.unreadable"

    def __init__(self, door: StoreDoor) -> None:
        self._door = door

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        count = await in_own_thread(store.events.count_unreadable) if store is not None else 0
        if not count:
            return []
        what = f"{count_of(count, 'event')} of your topics could not be read; they changed nothing."
        return [warning(self.name, what, "Look at them: sendonce events list --unreadable")]
