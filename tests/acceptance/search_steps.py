"""``python -m tests.acceptance.search_steps STEP…``: steps of the pipeline, in a process to be killed."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import datetime, timedelta

from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.ports.prospecting import ProspectingStore
from sendonce.settings import Settings, load_settings
from sendonce.wiring.searching import ingest_step, poll_step, submit_step
from sendonce.wiring.stores import open_store
from sendonce.wiring.worker import arm_failpoint

STEPS = {"submit": submit_step, "poll": poll_step, "ingest": ingest_step}


class LaterLedger:
    """The same ledger, by a clock that is ahead."""

    def __init__(self, store: SqlStore, ahead: timedelta) -> None:
        self._ledger = store.ledger
        self._ahead = ahead

    def now(self) -> datetime:
        return self._ledger.now() + self._ahead


def later(store: SqlStore, ahead: timedelta) -> ProspectingStore:
    shifted = SqlStore(store.database)
    shifted.ledger = LaterLedger(store, ahead)  # type: ignore[assignment]
    return shifted


def run_steps(settings: Settings, store: ProspectingStore, *steps: str, worker: str = "w") -> list[StepCount]:
    return [_patiently(settings, store, step, worker) for step in steps]


def _patiently(settings: Settings, store: ProspectingStore, step: str, worker: str) -> StepCount:
    """A busy machine may not use a permit in time; then the step is done over, as in the next cycle."""
    count = STEPS[step](settings, store, worker, 1000)
    while "in time" in count.note:
        more = STEPS[step](settings, store, worker, 1000)
        sums = (count.taken + more.taken, count.done + more.done, count.failed + more.failed)
        count = StepCount(*sums, more.note)
    return count


if __name__ == "__main__":
    given = load_settings(dotenv=None)
    arm_failpoint(given)
    with closing(open_store(given)) as opened:
        run_steps(given, opened, *sys.argv[1:], worker="to be killed")
