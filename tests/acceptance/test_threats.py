"""What strangers send to the service, and what must not come of it."""

from __future__ import annotations

import http.client
import json
import re
import select
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
import time_machine

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.jobs import ClaimRequest, JobState
from sendonce.domain.engine.tokens import sign_token
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, SubscriberStatus
from sendonce.entrypoints.http import access
from tests.acceptance.house import ask
from tests.adapters.http_stage import BEARER, HttpStage, serving, token_of
from tests.conformance.stage import LETTER, Stage, address, event_of, people
from tests.crash.world import Process, free_port, until

POSTS = (
    "/send-mailout",
    "/ses-events",
    "/webhooks/notion",
    "/unsubscribe?token=x",
    "/unsubscribe/undo?token=x",
)
SECRETS = {
    "EXECUTOR_SHARED_SECRET": "executor-secret-0001",
    "CRON_SECRET": "cron-secret-0002",
    "UNSUBSCRIBE_SECRET": "unsubscribe-secret-0003",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-0004",
    "AWS_ACCESS_KEY_ID": "AKIA0123456789ABCDEF",
    "NOTION_TOKEN": "ntn_0123456789abcdefghij",
}


class Running(NamedTuple):
    """`sendonce serve --no-worker` as a process of its own."""

    process: Process
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def peak_kilobytes(self) -> int:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1])


@pytest.fixture
def running(tmp_path: Path, sqlite_url: str) -> Iterator[Running]:
    port = free_port()
    environment = {
        **SECRETS,
        "DATABASE_URL": sqlite_url,
        "STATE_DIR": str(tmp_path / "state"),
        "PORT": str(port),
        "NOTION_API_URL": "http://127.0.0.1:1",
        "NOTION_WEBHOOK_TOKEN": "webhook-token-0005",
        "LOG_FORMAT": "json",
        "LOG_LEVEL": "debug",
    }
    serve = [sys.executable, "-m", "sendonce", "serve", "--no-worker"]
    process = Process(serve, environment, tmp_path / "serve.log", tmp_path)
    service = Running(process, port)
    try:
        until(lambda: _ready(service.url), 30, "the service is ready")
        yield service
    finally:
        process.end()


def _ready(url: str) -> bool:
    try:
        return ask(f"{url}/readyz").status == 200
    except OSError:
        return False


@pytest.fixture
def service(sqlite_url: str) -> Iterator[HttpStage]:
    with serving(sqlite_url) as stage:
        yield stage


# --- bodies and secrets --------------------------------------------------------------------------


def test_a_hundred_megabytes_are_refused_everywhere_and_leave_the_memory_flat(running: Running) -> None:
    """Each call that takes a body: 413, with the length declared and without; less than 8 MB more."""
    before = running.peak_kilobytes()
    for path in POSTS:
        for chunked in (False, True):
            client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
            length = {} if chunked else {"Content-Length": str(100 * 2**20)}
            pieces = iter([b"[" * 2**20] * 100)
            client.request("POST", path, pieces, length, encode_chunked=chunked)
            assert client.getresponse().status == 413, path
            assert list(pieces) == [], "not all of it was sent"
            client.close()
    assert running.peak_kilobytes() - before < 8 * 1024


def _resident_kilobytes(running: Running) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{running.process.pid}/status").read_text())
    assert found is not None
    return int(found[1])


CHUNKED = b"POST /send-mailout HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG_HEADS = {
    "address": (b"GET /", b"a"),
    "one field": (b"GET / HTTP/1.1\r\nX: ", b"a"),
    "many fields": (b"GET / HTTP/1.1\r\n", b"a: b\r\n"),
    "trailer": (CHUNKED + b"0\r\nX: ", b"a"),
    "chunk extension": (CHUNKED + b"1;", b"a"),
}


def test_a_hundred_megabytes_of_head_leave_the_memory_flat(running: Running) -> None:
    """It is cut at 64 KB, whatever it is made of; less than 8 MB more."""
    before = running.peak_kilobytes()
    for name, (first, piece) in LONG_HEADS.items():
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
            megabyte = piece * (2**20 // len(piece))
            with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012
                client.sendall(first)
                for _ in range(100):
                    client.sendall(megabyte)
        assert running.peak_kilobytes() - before < 8 * 1024, name
    assert ask(f"{running.url}/healthz").status == 200


def test_three_hundred_who_ask_for_an_image_and_do_not_read_it_take_little_memory(
    running: Running, sqlite_url: str
) -> None:
    """An image of 4.9 MB is in memory once, and each of them has a piece of it."""
    name = "1" * 64
    with closing(open_store(sqlite_url)) as store:
        store.assets.put(name, "image/jpeg", b"p" * 4_900_000)
    before = _resident_kilobytes(running)
    with ExitStack() as stack:
        for _ in range(300):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=20))
            client.sendall(f"GET /assets/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        until(lambda: select.select([client], [], [], 0)[0], 20, "the last one has its answer")
        assert _resident_kilobytes(running) - before < 40 * 1024
        assert ask(f"{running.url}/healthz").status == 200


BOMBS = {
    "100,000 levels": b"[" * 100_000,
    "40,000 levels of objects": b'{"a":' * 40_000,
    "a key twice": b'{"mailout_id": "a", "mailout_id": "b"}',
    "NaN": b'{"mailout_id": NaN}',
    "not UTF-8": b'{"mailout_id": "\xff\xfe"}',
    "half a surrogate": b'{"mailout_id": "\\ud800", "Type": "\\udfff"}',
    "a number of 100,000 digits": b'{"mailout_id": ' + b"9" * 100_000 + b"}",
    "nothing": b"",
}


def test_bodies_that_are_traps_are_refused_in_an_orderly_way(running: Running) -> None:
    """Deep, ambiguous or broken JSON is a 4xx everywhere, with a right secret too; nothing is logged as
    an error."""
    right = {"Authorization": f"Bearer {SECRETS['EXECUTOR_SHARED_SECRET']}"}
    for path in POSTS:
        for name, body in BOMBS.items():
            answer = ask(running.url + path, body, method="POST", headers=right)
            assert 400 <= answer.status < 500, (path, name, answer)
    assert ask(f"{running.url}/healthz").status == 200
    assert not [line for line in running.process.lines() if line["level"] in ("error", "critical")]


@pytest.mark.long
def test_a_wrong_secret_takes_as_long_as_any_other() -> None:
    """A hundred thousand samples: wrong in the first character, in the last, or in its length."""
    secret = "0123456789abcdef" * 4
    guesses = {"first": "x" + secret[1:], "last": secret[:-1] + "x", "short": secret[:8], "long": secret * 8}
    spent: dict[str, list[int]] = {name: [] for name in guesses}
    for _ in range(100_000):
        for name, guess in guesses.items():
            began = time.perf_counter_ns()
            access.is_among([guess], [secret])
            spent[name].append(time.perf_counter_ns() - began)
    medians = {name: statistics.median(samples) for name, samples in spent.items()}
    # The guess itself is hashed, so its own length may show; where it differs from the secret may not.
    assert abs(medians["first"] - medians["last"]) < 0.03 * medians["last"], medians


def test_a_million_guesses_get_few_answers_and_little_memory() -> None:
    """Ten peers with a hundred thousand guesses each, in a minute: fifty answers a peer at the most."""
    now = 0.0
    limit = access.FailureLimit(lambda: now)
    allowed = 0
    for number in range(1_000_000):
        now = number * 60 / 1_000_000
        allowed += limit.spend(f"10.0.0.{number % 10}")
    assert allowed <= 10 * 50
    assert len(limit._peers) == 10


# --- events and tenants --------------------------------------------------------------------------


def test_a_thousand_copies_of_an_event_are_one(service: HttpStage) -> None:
    """A complaint, then a thousand copies of a delivery: one row, one mark, and the complaint stays."""
    service.stage.running()
    job = service.stage.claim_one()
    service.stage.event(job, EventKind.COMPLAINT)
    delivery = event_of(job, EventKind.DELIVERED)
    verdicts = [service.store.events.record(delivery) for _ in range(1000)]
    assert verdicts == [EventVerdict.APPLIED] + [EventVerdict.DUPLICATE_EVENT] * 999
    assert len(service.store.events.all(job_id=job.id)) == 2
    assert service.stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED


def test_an_event_and_a_link_reach_the_tenant_of_their_letter_only(service: HttpStage) -> None:
    """Two tenants write to one person; what is told of one's letter changes nothing of the other's."""
    service.execute("INSERT INTO tenants (id, name, created_at) VALUES ('other', 'other', '2026-01-01')")
    store = service.store
    tenants = (DEFAULT_TENANT, "other")
    for tenant in tenants:
        store.subscribers.upsert(tenant, people([0, 1]))
        mailout = store.mailouts.create(tenant, NewMailout("news", "file", LETTER))
        assert store.mailouts.start(mailout.id)
        service.stage.plan(mailout.id)
    worker = service.stage.worker()
    jobs = store.ledger.turn((), ClaimRequest(worker, "token", 50)).claimed
    found = {(service.stage.job(job).tenant_id, job.recipient): service.stage.job(job) for job in jobs}
    store.events.record(event_of(found["other", address(0).text], EventKind.BOUNCE))
    link = sign_token(found["other", address(1).text].id, b"signs the links of the tests")
    assert service.ask("POST", f"/unsubscribe?token={link}").status == 200
    for number in (0, 1):
        assert store.suppressions.covers("other", address(number)) is not None
        assert store.suppressions.covers(DEFAULT_TENANT, address(number)) is None
        assert service.stage.subscriber(number).status == SubscriberStatus.ACTIVE
    assert service.stage.state(found[DEFAULT_TENANT, address(0).text]) == JobState.SENDING


# --- the unsubscribe link ------------------------------------------------------------------------


def test_scanners_change_nothing_where_the_page_asks_first(sqlite_url: str) -> None:
    """UNSUBSCRIBE_CONFIRM=true: a scanner may open every link with every method that is not POST."""
    with serving(sqlite_url, {"UNSUBSCRIBE_CONFIRM": "true"}) as service:
        job = service.planned_job()
        for path in ("/unsubscribe", "/unsubscribe/undo"):
            for method in ("GET", "HEAD", "OPTIONS", "PROPFIND", "TRACE", "PUT", "DELETE"):
                service.ask(method, f"{path}?token={token_of(job)}")
        assert service.stage.subscriber().status == SubscriberStatus.ACTIVE
        assert service.store.suppressions.all() == []


def test_a_link_of_three_years_ago_still_works(service: HttpStage) -> None:
    """The way out of a letter does not expire."""
    job = service.planned_job()
    link = f"/unsubscribe?token={token_of(job)}"
    with time_machine.travel(datetime.now(UTC) + timedelta(days=3 * 365)):
        assert service.ask("POST", link, b"List-Unsubscribe=One-Click").status == 200
    assert service.stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED


# --- words that are code elsewhere ---------------------------------------------------------------

INJECTIONS = [
    "' OR 1=1--",
    "id;drop table subscribers",
    '"; DELETE FROM message_jobs; --',
    "%00",
    "\x00",
    "../../etc/passwd",
    "{{7*7}}",
    "%s%s%n",
    "${jndi:ldap://127.0.0.1/x}",
    "\u202e\ud7ff\U0001f4a3",
]


@pytest.mark.parametrize("text", INJECTIONS)
def test_text_is_never_code(service: HttpStage, text: str) -> None:
    """In every place of every call: an orderly refusal, and the tables are as they were."""
    mailout_id = service.ready_mailout(recipients=2)
    told = quote(text, safe="")
    statuses = {
        service.start(text).status,
        service.ask("GET", f"/mailouts/{told}", headers=BEARER).status,
        service.ask("GET", f"/assets/{told}").status,
        service.ask("GET", f"/unsubscribe?token={told}").status,
        service.ask("GET", f"/tick?seconds={told}", headers=BEARER).status,
        service.ask("POST", "/send-mailout", {"mailout_id": mailout_id, "auth_token": text}).status,
    }
    assert statuses <= {400, 401, 404, 501}
    assert service.store.subscribers.count(DEFAULT_TENANT) == {"active": 2}
    assert service.start(mailout_id).status == 200


def test_the_log_holds_no_secret_and_no_forged_line(running: Running, sqlite_url: str) -> None:
    """Secrets shown in headers, in bodies and in addresses, and values with line ends and escapes in them:
    each line of the log is one JSON object, and none has a secret or a link's token in it."""
    with closing(open_store(sqlite_url)) as store:
        stage = Stage(store)
        stage.running()
        link = sign_token(stage.claim_one().id, SECRETS["UNSUBSCRIBE_SECRET"].encode())
    forged = '\n{"level": "info", "event": "all is well"}\x1b[2J\r2026 INFO ok'
    for secret in SECRETS.values():
        shown = {"Authorization": f"Bearer {secret}"}
        body = {"mailout_id": secret + forged, "auth_token": secret}
        body |= {"Type": "Notification", "TopicArn": secret + forged, "Message": secret}
        for path in POSTS:
            ask(running.url + path, body, headers=shown)
        ask(f"{running.url}/mailouts/{quote(secret + forged, safe='')}", headers=shown)
        ask(f"{running.url}/unsubscribe?token={secret}", headers=shown)
    assert ask(f"{running.url}/unsubscribe?token={link}").status == 200
    running.process.end()
    lines = running.process.log.read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    assert any(event["event"] == "unsubscribed" for event in events)
    assert any("all is well" in event.get("error", "") for event in events), "the forgery was not even logged"
    assert not any(event["event"] == "all is well" for event in events)
    text = running.process.log.read_text()
    for hidden in (*SECRETS.values(), link, "\x1b"):
        assert hidden not in text
