"""What Prometheus may know: counts and times, never an address, a tenant or a secret.

``Metrics`` is what the engine counts into and what ``/metrics`` renders; ``NullMetrics`` counts nothing.
Every label has few values: codes come from servers we do not trust, and each new label value costs
Prometheus memory for ever.
"""

from __future__ import annotations

import hmac
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.errors import BadSetting

if TYPE_CHECKING:
    from prometheus_client import Counter
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    from sendonce.ports.engine import ReadableMeter

logger = logging.getLogger(__name__)

_CACHE_SECONDS = 5.0
_MOST_REASONS = 60
_LONGEST_REASON = 40
# From a commit on a fast disk to a database that is in trouble.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# A scraper asks every few seconds; more open connections than this are no scraper's.
_MOST_CONNECTIONS = 8
_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.1  # how soon close() is noticed


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

    ``jobs_by_state`` and ``queue_age`` (how long the oldest due job has been waiting, in seconds) are
    asked at most every five seconds, however often somebody scrapes. They run in the scraper's thread.
    """

    def __init__(
        self,
        jobs_by_state: Callable[[], Mapping[str, int]] | None = None,
        queue_age: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
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
            registry.register(_ledger_collector(jobs_by_state, queue_age, clock))

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
    clock: Callable[[], float],
) -> Collector:
    """A collector that asks the ledger when it is scraped. A ledger that is down is a value, not an error."""
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    class LedgerCollector(Collector):
        def __init__(self) -> None:
            self._lock = threading.Lock()
            self._asked = float("-inf")
            self._told: list[GaugeMetricFamily] = []

        def collect(self) -> Iterable[GaugeMetricFamily]:
            with self._lock:
                if clock() - self._asked >= _CACHE_SECONDS:
                    self._told = self._ask()
                    self._asked = clock()
                return self._told

        def _ask(self) -> list[GaugeMetricFamily]:
            up = "sendonce_ledger_up", "Whether the ledger answered when it was asked last."
            try:
                told = _job_gauges(jobs_by_state())
                if queue_age is not None:
                    about = "How long the oldest due job has been waiting."
                    told.append(GaugeMetricFamily("sendonce_queue_age_seconds", about, value=queue_age()))
            except Exception as exc:  # noqa: BLE001 - whatever is wrong with a database, the rest must be seen
                logger.warning("metrics without the ledger", extra={"fields": {"error": str(exc)}})
                return [GaugeMetricFamily(*up, value=0)]
            return [GaugeMetricFamily(*up, value=1), *told]

    return LedgerCollector()


def _job_gauges(counts: Mapping[str, int]) -> list[GaugeMetricFamily]:
    from prometheus_client.core import GaugeMetricFamily

    jobs = GaugeMetricFamily("sendonce_jobs", "Message jobs in the ledger.", labels=["state"])
    for state in JobState:
        jobs.add_metric([state.value], counts.get(state.value, 0))
    about = "Letters handed to a provider, outcome unknown."
    return [jobs, GaugeMetricFamily("sendonce_in_doubt", about, value=counts.get(JobState.IN_DOUBT.value, 0))]


def serve_metrics(
    metrics: ReadableMeter, port: int, host: str = "127.0.0.1", token: str = ""
) -> MetricsServer:
    """Serve ``GET /metrics`` from a thread of its own, for a worker that has no HTTP service.

    With a token only ``Authorization: Bearer …`` is answered. Without one it is for this machine alone,
    whatever ``host`` says. Port 0 takes a free one.
    """
    if not token:
        host = "127.0.0.1"
    try:
        return MetricsServer(metrics, port, host, token)
    except OSError as exc:
        raise BadSetting(
            f"METRICS_PORT is {port}: {host} cannot be listened on there ({exc.strerror})."
            " Set it to a free port, e.g., METRICS_PORT=9464, or to 0 for none."
        ) from exc


class MetricsServer:
    """A running server; ``close`` or leaving the ``with`` block ends it."""

    def __init__(self, metrics: ReadableMeter, port: int, host: str, token: str) -> None:
        self._server = _Server((host, port), _handler(metrics, token))
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """Turns away connections beyond a handful, so that a flood costs the worker nothing."""

    daemon_threads = False  # close() waits for them; a client has five seconds
    block_on_close = True
    request_queue_size = 32

    def __init__(self, *args: Any) -> None:
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """A client that hung up is no news; the standard one prints a traceback."""
        logger.debug("metrics client failed", exc_info=True)


def _handler(metrics: ReadableMeter, token: str) -> type[BaseHTTPRequestHandler]:
    expected = f"Bearer {token}".encode()

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE_SECONDS
        server_version, sys_version = "sendonce", ""

        def do_GET(self) -> None:
            shown = self.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if token and not hmac.compare_digest(shown, expected):
                self._answer(401, b"unauthorized\n", "text/plain")
            elif self.path.partition("?")[0] != "/metrics":
                self._answer(404, b"not found\n", "text/plain")
            else:
                self._answer(200, metrics.render(), metrics.content_type)

        def _answer(self, status: int, body: bytes, content_type: str) -> None:
            with suppress(ConnectionError, TimeoutError):
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
