"""Find the jobs that a person names."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.domain.engine.ids import whole_id
from sendonce.domain.engine.jobs import Job
from sendonce.errors import NotFound
from sendonce.ports.engine import EngineStore


def find_jobs(store: EngineStore, names: Sequence[str]) -> list[Job]:
    """By their ids, or the beginnings of them. Raises NotFound before anything is changed."""
    return [_find(store, name) for name in names]


def _find(store: EngineStore, name: str) -> Job:
    job = store.jobs.get(whole_id("job", name, store.jobs.with_prefix))
    if job is None:
        raise NotFound(f"There is no job {name[:100]!r}: 'sendonce jobs list' shows what there is.")
    return job
