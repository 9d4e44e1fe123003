"""Processes that run the pipeline: signals and names around its flow."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from types import FrameType

from sendonce.domain.prospecting.pipeline import JournalLine, Manner, StepName
from sendonce.entrypoints.worker import stopping_signals
from sendonce.flows.prospecting.free_leases import free_leases
from sendonce.flows.prospecting.run_pipeline import prune_journal, run_cycle, run_loop, run_until_idle
from sendonce.ports.prospecting import ProspectingStore
from sendonce.settings import Settings
from sendonce.wiring.house import worker_name
from sendonce.wiring.pipeline import pipeline_steps, roll_call
from sendonce.wiring.worker import arm_failpoint

log = logging.getLogger(__name__)


def run_pipeline(
    settings: Settings, store: ProspectingStore, manner: Manner, wanted: Sequence[StepName], name: str
) -> Sequence[JournalLine]:
    """The lines that it left; of a loop, which may go on for months, none."""
    arm_failpoint(settings)
    worker = name or worker_name(settings)
    steps = pipeline_steps(settings, store, wanted, worker)
    with seen_alive(settings, store, worker), stopped_by_signal() as stopping:
        journal, clock = store.pipeline_journal, store.ledger.now
        keep = timedelta(days=settings.prospect_journal_keep_days)

        def cycle() -> list[JournalLine]:
            if keep:
                prune_journal(journal, keep, clock())
            return run_cycle(steps, journal, worker, clock, stopping.is_set)

        match manner:
            case Manner.ONCE:
                return cycle()
            case Manner.UNTIL_IDLE:
                return run_until_idle(cycle, stopping.is_set)
            case Manner.LOOP:
                log.info("the pipeline runs", extra={"fields": {"worker": worker, "steps": list(steps)}})
                run_loop(cycle, settings.prospect_interval_seconds, stopping.wait)
                return ()


def seen_alive(settings: Settings, store: ProspectingStore, worker: str) -> AbstractContextManager[None]:
    """What others that died on this machine had taken is free first."""
    return roll_call(settings, store).present(worker, partial(free_leases, store))


@contextmanager
def stopped_by_signal() -> Iterator[threading.Event]:
    """Set by SIGTERM, SIGINT or SIGHUP: what is under way ends first. A second signal does not wait."""
    stopping = threading.Event()

    def stop(number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        log.info("stopping", extra={"fields": {"signal": signal.Signals(number).name}})
        stopping.set()

    before = {number: signal.signal(number, stop) for number in stopping_signals()}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
