"""What Prometheus may know: counts, times and the ids of tenants, never an address or a secret.

``Metrics`` is what the engine counts into and what ``/metrics`` renders; ``NullMetrics`` counts nothing.
Every label has few values: codes come from servers we do not trust, and each new label value costs
Prometheus memory for ever.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from sendonce.adapters.metrics.overview import overview_families
from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused

if TYPE_CHECKING:
    from prometheus_client import Counter, Metric
    from prometheus_client.registry import Collector

    from sendonce.domain.engine.overview import Overview

logger = logging.getLogger(__name__)

_CACHE_SECONDS = 5.0
_MOST_REASONS = 60
_LONGEST_REASON = 40
# From a commit on a fast disk to a database that is in trouble.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class NullMetrics:
    """Counts nothing."""

    def observe_turn(self, claimed: int, settled: int, seconds: float) -> None:
        pass

    def count_outcome(self, transport: str, outcome: Outcome) -> None:
        pass

    def count_event(self, kind: EventKind, verdict: EventVerdict) -> None:
        pass

    def count_unreadable(self) -> None:
        pass


class Metrics:
    """Counters of this process, and the state of the ledger as the callbacks tell it.

    ``jobs_by_state``, ``queue_age`` (how long the oldest due job has been waiting, in seconds) and
    ``overview`` are asked at most every five seconds, however often somebody scrapes. They run in the
    scraper's thread.
    """

    def __init__(
        self,
        jobs_by_state: Callable[[], Mapping[str, int]] | None = None,
        queue_age: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        overview: Callable[[], Overview] | None = None,
    ) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._registry = registry = CollectorRegistry()
        self._reasons = _FewNames(_MOST_REASONS)
        self._sends = Counter(
            "sendonce_sends",
            "Outcomes of attempts, as the transport answered.",
            ["transport", "outcome", "reason"],
            registry=registry,
        )
        self._send_counters: dict[tuple[str, type[Outcome], str, bool], Counter] = {}
        self._events = Counter(
            "sendonce_events", "Delivery events that came in.", ["type", "verdict"], registry=registry
        )
        self._unreadable = Counter(
            "sendonce_unreadable_events", "Genuine events that could not be read.", registry=registry
        )
        self._claimed = Counter("sendonce_claimed", "Jobs claimed.", registry=registry)
        self._settled = Counter("sendonce_settled", "Jobs settled.", registry=registry)
        self._claim_seconds = Histogram(
            "sendonce_claim_seconds", "Time of a commit that claimed.", registry=registry, buckets=_BUCKETS
        )
        self._settle_seconds = Histogram(
            "sendonce_settle_seconds", "Time of a commit that settled.", registry=registry, buckets=_BUCKETS
        )
        if jobs_by_state is not None:
            registry.register(_ledger_collector(jobs_by_state, queue_age, overview, clock))

    def observe_turn(self, claimed: int, settled: int, seconds: float) -> None:
        """One commit of the engine. Settling a group and claiming the next is one commit, in both times."""
        if claimed:
            self._claimed.inc(claimed)
            self._claim_seconds.observe(seconds)
        if settled:
            self._settled.inc(settled)
            self._settle_seconds.observe(seconds)

    def count_outcome(self, transport: str, outcome: Outcome) -> None:
        code = outcome.code if isinstance(outcome, Refused | Deferred) else ""
        throttle = isinstance(outcome, Deferred) and outcome.throttle
        # Finding a labelled child costs more than counting: keep those of the codes seen before.
        key = (transport, type(outcome), code, throttle)
        counter = self._send_counters.get(key)
        if counter is None:
            reason = self._reasons.admit(code) if code else ""
            counter = self._sends.labels(transport, _outcome_name(outcome), reason)
            if reason == code:
                self._send_counters[key] = counter
        counter.inc()

    def count_event(self, kind: EventKind, verdict: EventVerdict) -> None:
        self._events.labels(str(kind), str(verdict)).inc()

    def count_unreadable(self) -> None:
        self._unreadable.inc()

    def render(self) -> bytes:
        """The page in Prometheus' text format."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    @property
    def content_type(self) -> str:
        from prometheus_client import CONTENT_TYPE_LATEST

        return CONTENT_TYPE_LATEST


def _outcome_name(outcome: Outcome) -> str:
    match outcome:
        case Accepted():
            return "accepted"
        case Refused():
            return "refused"
        case Deferred(throttle=True):
            return "throttled"
        case Deferred():
            return "deferred"
        case InDoubt():
            return "in_doubt"


class _FewNames:
    """Lets the first so many distinct names through; all later ones are ``other``."""

    OTHER = "other"

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def admit(self, name: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:_LONGEST_REASON]
        if plain not in self._known:
            if len(self._known) >= self._most:
                return self.OTHER
            self._known.add(plain)
        return plain


def _ledger_collector(
    jobs_by_state: Callable[[], Mapping[str, int]],
    queue_age: Callable[[], float] | None,
    overview: Callable[[], Overview] | None,
    clock: Callable[[], float],
) -> Collector:
    """A collector that asks the ledger when it is scraped. A ledger that is down is a value, not an error."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    class LedgerCollector(Collector):
        def __init__(self) -> None:
            self._lock = threading.Lock()
            self._asked = float("-inf")
            self._told: list[Metric] = []

        def collect(self) -> Iterable[Metric]:
            with self._lock:
                if clock() - self._asked >= _CACHE_SECONDS:
                    self._told = self._ask()
                    self._asked = clock()
                return self._told

        def _ask(self) -> list[Metric]:
            up = "sendonce_ledger_up", "Whether the ledger answered when it was asked last."
            try:
                told = _job_gauges(jobs_by_state())
                if queue_age is not None:
                    about = "How long the oldest due job has been waiting."
                    told.append(GaugeMetricFamily("sendonce_queue_age_seconds", about, value=queue_age()))
                if overview is not None:
                    told += overview_families(overview())
            except Exception as exc:  # noqa: BLE001 - whatever is wrong with a database, the rest must be seen
                logger.warning("metrics without the ledger", extra={"fields": {"error": str(exc)}})
                return [GaugeMetricFamily(*up, value=0)]
            return [GaugeMetricFamily(*up, value=1), *told]

    return LedgerCollector()


def _job_gauges(counts: Mapping[str, int]) -> list[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    jobs = GaugeMetricFamily("sendonce_jobs", "Message jobs in the ledger.", labels=["state"])
    for state in JobState:
        jobs.add_metric([state.value], counts.get(state.value, 0))
    about = "Letters handed to a provider, outcome unknown."
    return [jobs, GaugeMetricFamily("sendonce_in_doubt", about, value=counts.get(JobState.IN_DOUBT.value, 0))]
