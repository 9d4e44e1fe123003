"""Whether jobs wait for a letter that is gone. They are neither failed nor lost, but none of them leaves."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import Check, count_of, ok, stop
from sendonce.domain.engine.dispatches import LETTER_GONE
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.ports.store import Store

_MOST_NAMED = 1000


class LettersGoneProbe:
    name = "letters"

    def __init__(self, door: StoreDoor) -> None:
        self._door = door

    async def examine(self) -> Sequence[Check]:
        store = await self._door.get_or_none()
        if store is None:
            return []
        waiting = await in_own_thread(lambda: _waiting(store))
        if not waiting:
            return [ok(self.name, "Every letter that waits to be sent is there.")]
        number = count_of(len(waiting), "job waits", "jobs wait")
        more = " at least" if len(waiting) == _MOST_NAMED else ""
        dispatches = ", ".join(sorted({job.dispatch_id for job in waiting})[:3])
        what = f"{number}{more} for a letter that is gone: {waiting[0].reason} Dispatch: {dispatches}."
        fix = "Restore the rows of 'letters' from a backup, and the jobs go on. Or cancel the dispatch."
        return [stop(self.name, what, fix)]


def _waiting(store: Store) -> Sequence[Job]:
    return store.jobs.list(states=[JobState.SCHEDULED], code=LETTER_GONE, limit=_MOST_NAMED)
