"""A store in, what is counted and shown to Prometheus out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.ports.engine import Meter, ReadableMeter
    from sendonce.ports.store import Store


def make_metrics(store: Store) -> ReadableMeter:
    """Counters of this process, with the state of the ledger beside them."""
    from sendonce.adapters.metrics import Metrics
    from sendonce.flows.engine.show_overview import show_overview
    from sendonce.wiring.stores import has_campaigns

    overview = partial(show_overview, store) if has_campaigns(store) else None
    return Metrics(store.jobs.count_by_state, lambda: _queue_age(store), overview=overview)


def no_metrics() -> Meter:
    """Counts nothing: for a process that is over before anybody asks."""
    from sendonce.adapters.metrics import NullMetrics

    return NullMetrics()


def served_metrics(settings: Settings, meter: ReadableMeter) -> AbstractContextManager[object]:
    """The page on METRICS_PORT while this is entered, for a worker without an HTTP service."""
    from sendonce.adapters.metrics import serve_metrics

    if not settings.metrics_port:
        return nullcontext()
    return serve_metrics(meter, settings.metrics_port, settings.host, settings.executor_shared_secret)


def _queue_age(store: Store) -> float:
    """Seconds for which the job that is due longest has been waiting."""
    due = store.jobs.oldest_due()
    return max((store.ledger.now() - due).total_seconds(), 0.0) if due else 0.0
