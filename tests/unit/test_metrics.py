"""Metrics: what is counted, how few labels there are, and who may read them."""

from __future__ import annotations

import http.client
import logging
import socket
import subprocess
import sys
from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sendonce.adapters.metrics import Metrics, NullMetrics, serve_metrics
from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.errors import BadSetting

TOKEN = "a-bearer-token"


def samples(metrics: Metrics) -> dict[str, float]:
    """``{"name{label=value,…}": number}`` of the rendered page."""
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for it in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(it.labels.items()))
            found[f"{it.name}{{{labels}}}" if labels else it.name] = it.value
    return found


@pytest.mark.parametrize(
    ("outcome", "labels"),
    [
        (Accepted("id-1"), "outcome=accepted,reason="),
        (Refused("550", "no such user"), "outcome=refused,reason=550"),
        (Deferred("451", "later"), "outcome=deferred,reason=451"),
        (Deferred("429", "slow down", throttle=True), "outcome=throttled,reason=429"),
        (InDoubt("reply lost from 192.0.2.1:4711"), "outcome=in_doubt,reason="),
    ],
)
def test_every_outcome_is_counted_under_its_name(outcome: Outcome, labels: str) -> None:
    """The code is a label; free text, ids and addresses are not."""
    metrics = Metrics()
    metrics.count_outcome("smtp", outcome)
    metrics.count_outcome("smtp", outcome)
    assert samples(metrics)[f"sendonce_sends_total{{{labels},transport=smtp}}"] == 2


def test_a_server_that_invents_codes_cannot_grow_the_page() -> None:
    """After sixty reasons all new ones are "other", those known stay themselves, none is lost."""
    metrics = Metrics()
    for number in range(1_000):
        metrics.count_outcome("smtp", Refused(f"5{number} ann@example.com\n" + "x" * 500, "no"))
    metrics.count_outcome("smtp", Refused("50 ann@example.com\n" + "x" * 500, "no"))
    sends = {
        name: value for name, value in samples(metrics).items() if name.startswith("sendonce_sends_total")
    }
    assert len(sends) == 61
    assert sum(sends.values()) == 1_001
    assert sends["sendonce_sends_total{outcome=refused,reason=other,transport=smtp}"] == 940
    assert max(map(len, sends)) < 120


def test_a_turn_is_timed_for_what_it_did() -> None:
    """A commit that only settled is no claim."""
    metrics = Metrics()
    metrics.observe_turn(claimed=50, settled=0, seconds=0.004)
    metrics.observe_turn(claimed=50, settled=50, seconds=0.004)
    metrics.observe_turn(claimed=0, settled=0, seconds=0.004)
    found = samples(metrics)
    assert (found["sendonce_claimed_total"], found["sendonce_settled_total"]) == (100, 50)
    assert (found["sendonce_claim_seconds_count"], found["sendonce_settle_seconds_count"]) == (2, 1)
    assert found["sendonce_claim_seconds_bucket{le=0.005}"] == 2


def test_events_are_counted_by_kind_and_verdict() -> None:
    """A duplicate send has a series of its own, to alarm on."""
    metrics = Metrics()
    metrics.count_event(EventKind.BOUNCE, EventVerdict.APPLIED)
    metrics.count_event(EventKind.SENT, EventVerdict.DUPLICATE_SEND)
    found = samples(metrics)
    assert found["sendonce_events_total{type=bounce,verdict=applied}"] == 1
    assert found["sendonce_events_total{type=sent,verdict=duplicate_send}"] == 1


def test_the_ledger_is_shown_whole_and_asked_at_most_every_five_seconds() -> None:
    """All seven states, zeros too; a scraper in a hurry does not query the database."""
    now, asked = [100.0], []

    def count() -> Mapping[str, int]:
        asked.append(now[0])
        return {"scheduled": 7, "in_doubt": 2}

    metrics = Metrics(count, queue_age=lambda: 12.5, clock=lambda: now[0])
    found = samples(metrics)
    states = {name: value for name, value in found.items() if name.startswith("sendonce_jobs{")}
    assert len(states) == 7
    assert (states["sendonce_jobs{state=scheduled}"], states["sendonce_jobs{state=dead}"]) == (7, 0)
    assert (found["sendonce_in_doubt"], found["sendonce_queue_age_seconds"]) == (2, 12.5)
    now[0] = 104.9
    samples(metrics)
    now[0] = 105.0
    samples(metrics)
    assert asked == [100.0, 105.0]


def test_a_ledger_that_is_down_does_not_hide_the_counters(caplog: pytest.LogCaptureFixture) -> None:
    """It is a value, sendonce_ledger_up, and a line in the log."""

    def fail() -> Mapping[str, int]:
        raise OSError("no route to the database")

    metrics = Metrics(fail)
    metrics.count_outcome("ses", Accepted("x"))
    with caplog.at_level(logging.WARNING):
        found = samples(metrics)
    assert found["sendonce_ledger_up"] == 0
    assert found["sendonce_sends_total{outcome=accepted,reason=,transport=ses}"] == 1
    assert "sendonce_in_doubt" not in found
    assert "metrics without the ledger" in caplog.messages


def get(port: int, path: str = "/metrics", **headers: str) -> tuple[int, bytes, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers["Content-Type"]
    finally:
        connection.close()


def test_a_worker_serves_its_metrics_to_who_has_the_token() -> None:
    """All others get the same 401, whatever they ask for."""
    metrics = Metrics()
    with serve_metrics(metrics, 0, token=TOKEN) as server:
        status, body, content_type = get(server.port, Authorization=f"Bearer {TOKEN}")
        assert (status, content_type) == (200, metrics.content_type)
        assert b"sendonce_claimed_total 0.0" in body
        refusals = [
            get(server.port),
            get(server.port, Authorization=f"Bearer {TOKEN}x"),
            get(server.port, Authorization="Bearer "),
            get(server.port, Authorization=TOKEN),
            get(server.port, Authorization="Bearer \xff"),
            get(server.port, "/elsewhere"),
        ]
        assert set(refusals) == {(401, b"unauthorized\n", "text/plain")}
        assert get(server.port, "/elsewhere", Authorization=f"Bearer {TOKEN}")[0] == 404


def test_without_a_token_the_page_is_open() -> None:
    """On loopback, by default."""
    with serve_metrics(Metrics(), 0) as server:
        assert get(server.port)[0] == 200


def test_without_a_token_nobody_else_can_look() -> None:
    """Whatever HOST says: this machine alone. With a token the host is as given."""
    with serve_metrics(Metrics(), 0, "0.0.0.0") as server, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)
    with serve_metrics(Metrics(), 0, "0.0.0.0", TOKEN) as server:
        socket.create_connection(("127.0.0.2", server.port), timeout=5).close()


def test_idle_connections_do_not_pile_up() -> None:
    """The ninth is turned away, and when one leaves there is room again."""
    with serve_metrics(Metrics(), 0) as server:
        address = ("127.0.0.1", server.port)
        idle = [socket.create_connection(address, timeout=5) for _ in range(8)]
        with socket.create_connection(address, timeout=5) as ninth:
            assert ninth.recv(1) == b""
        for connection in idle:
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
            connection.close()


def test_a_port_in_use_is_a_bad_setting() -> None:
    """The variable, the value and the fix."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            BadSetting, match=rf"METRICS_PORT is {port}: .*Address already in use.*METRICS_PORT=9464"
        ):
            serve_metrics(Metrics(), port)


def test_counting_nothing_needs_no_prometheus() -> None:
    """NullMetrics costs no import."""
    program = "import sys; from sendonce.adapters import metrics; print('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_null_metrics_take_what_metrics_take() -> None:
    """The engine need not know which it has."""
    null = NullMetrics()
    null.observe_turn(1, 1, 0.1)
    null.count_outcome("ses", Accepted("x"))
    null.count_event(EventKind.SENT, EventVerdict.APPLIED)
