"""Group dead letters by why they died."""

from __future__ import annotations

from collections import Counter

from sendonce.domain.engine.dead_letters import DeadCause, DeadGroup, cause_of
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.domain.engine.tenants import DispatchId
from sendonce.ports.engine import EngineStore

CHUNK = 1000
WITHOUT_CODE = "no code"


def group_dead(store: EngineStore, dispatch_id: DispatchId | None = None) -> list[DeadGroup]:
    """Of one dispatch or of all, the largest group first."""
    codes: dict[DeadCause, Counter[str]] = {}
    newest: dict[DeadCause, Job] = {}
    after = ""
    while jobs := store.jobs.list(states=[JobState.DEAD], dispatch_id=dispatch_id, after=after, limit=CHUNK):
        after = jobs[-1].id
        for job in jobs:
            cause = cause_of(job)
            codes.setdefault(cause, Counter())[job.code or WITHOUT_CODE] += 1
            newest[cause] = job
    groups = [
        DeadGroup(cause, told.total(), dict(told.most_common()), newest[cause])
        for cause, told in codes.items()
    ]
    return sorted(groups, key=lambda group: (-group.count, group.cause))
