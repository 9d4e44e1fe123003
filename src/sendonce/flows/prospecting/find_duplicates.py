"""Look for duplicates among the companies that were visited since the last look."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.prospecting.duplicates import Judged
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.domain.prospecting.tasks import TaskKind
from sendonce.ports.prospecting import ProspectingStore

# A look takes milliseconds; a whole batch of them, on a slow disk, less than this.
_LEASE = timedelta(minutes=5)
_BATCH = 200


def find_duplicates(
    store: ProspectingStore, worker: str, limit: int, clock: Callable[[], datetime]
) -> StepCount:
    tasks = store.tasks.take(TaskKind.DEDUPE, worker, limit, clock(), _LEASE)
    judged = Judged()
    for task in tasks:
        judged += store.duplicates.look_at(task.tenant_id, task.payload["company"], clock())
        failpoint("dedupe-judged")
        store.tasks.done(task, clock())
    return StepCount(len(tasks), len(tasks), note=_told(judged))


def find_all_duplicates(store: ProspectingStore, worker: str, clock: Callable[[], datetime]) -> int:
    """Until no company waits for a look: how many there were."""
    looked = 0
    while taken := find_duplicates(store, worker, _BATCH, clock).taken:
        looked += taken
    return looked


def _told(judged: Judged) -> str:
    parts = {"merged": judged.merged, "nominated": judged.nominated, "parted": judged.parted}
    return ", ".join(f"{count} {what}" for what, count in parts.items() if count)
