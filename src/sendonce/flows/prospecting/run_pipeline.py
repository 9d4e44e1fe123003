"""Run the steps of the pipeline in turn. Each is restartable, so a cycle that ends midway is no harm."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from sendonce.domain.prospecting.pipeline import JournalLine, StepCount, StepName, got_on
from sendonce.errors import SendonceError, StoreLost
from sendonce.ports.prospecting import PipelineJournal

log = logging.getLogger(__name__)

_CHUNK = 1000

Step = Callable[[], StepCount]


def run_cycle(
    steps: Mapping[StepName, Step],
    journal: PipelineJournal,
    worker: str,
    clock: Callable[[], datetime],
    stopped: Callable[[], bool] = lambda: False,
) -> list[JournalLine]:
    """One turn of each step. What keeps one step from its work does not keep the others from theirs."""
    lines = []
    for name, step in steps.items():
        if stopped():
            break
        began = time.monotonic()
        count = _tried(name, step)
        lines.append(
            JournalLine(
                name,
                worker,
                count.taken,
                count.done,
                count.failed,
                round(time.monotonic() - began, 3),
                count.note,
                clock(),
            )
        )
        journal.add(lines[-1])
    return lines


def prune_journal(journal: PipelineJournal, keep: timedelta, now: datetime) -> int:
    """Forget lines that are older than ``keep``, a chunk at a time; how many."""
    pruned = 0
    while chunk := journal.prune(now - keep, _CHUNK):
        pruned += chunk
    return pruned


def _tried(name: StepName, step: Step) -> StepCount:
    try:
        return step()
    except StoreLost:
        raise
    except SendonceError as exc:
        log.warning("a step of the pipeline failed", extra={"fields": {"step": name, "reason": str(exc)}})
        return StepCount(failed=1, note=str(exc))


def run_until_idle(cycle: Callable[[], list[JournalLine]], stopped: Callable[[], bool]) -> list[JournalLine]:
    """Cycles until one gets nothing done; all their lines."""
    lines: list[JournalLine] = []
    while not stopped():
        latest = cycle()
        lines += latest
        if not any(map(got_on, latest)):
            break
    return lines


def run_loop(cycle: Callable[[], list[JournalLine]], interval: float, wait: Callable[[float], bool]) -> None:
    """Cycles until ``wait`` says stop. A cycle that had its hands full is followed by the next at once."""
    while not wait(0.0 if any(map(got_on, cycle())) else interval):
        pass
