"""The HTTP service: starting mailouts, the bodies of requests, and the pages for operators."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from sendonce.adapters.metrics import Metrics
from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.workers import Pulse
from sendonce.domain.mailouts.mailouts import MailoutStatus, NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.http import create_app
from sendonce.entrypoints.http.openapi import OPENAPI
from sendonce.settings import load_settings
from tests.adapters.http_stage import BEARER, SECRET, HttpStage, serving

NOBODY = "00000000-0000-7000-8000-000000000000"
LIMIT = 256 * 1024


@pytest.fixture
def service(sqlite_url: str) -> Iterator[HttpStage]:
    with serving(sqlite_url) as stage:
        yield stage


# --- starting a mailout -------------------------------------------------------------------------


def test_a_mailout_is_started(service: HttpStage) -> None:
    """It is claimed at once, a worker is nudged, and the answer says for how many people it is."""
    mailout_id = service.ready_mailout(recipients=3)
    answer = service.start(mailout_id)
    told = {"status": "sending", "mailout_id": mailout_id, "name": "news", "planned": 3}
    assert (answer.status, answer.json) == (200, told)
    assert service.stage.get(mailout_id).status == MailoutStatus.SENDING
    assert service.nudges == 1


@pytest.mark.parametrize(
    "headers", [BEARER, {"Authorization": f"bearer {SECRET}"}, {"X-Mailout-Token": SECRET}]
)
def test_the_token_may_come_in_a_header(service: HttpStage, headers: dict[str, str]) -> None:
    """Authorization: Bearer or X-Mailout-Token, in place of auth_token in the body."""
    mailout_id = service.ready_mailout()
    assert service.ask("POST", "/send-mailout", {"mailout_id": mailout_id}, headers).status == 200


def test_a_proxys_own_authorization_does_no_harm(service: HttpStage) -> None:
    """The right token in the body counts, whatever else stands in the headers."""
    body = {"mailout_id": service.ready_mailout(), "auth_token": SECRET}
    headers = {"Authorization": "Basic dTpw", "X-Mailout-Token": "another"}
    assert service.ask("POST", "/send-mailout", body, headers).status == 200


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_url"])
def test_of_twenty_starts_one_succeeds(request: pytest.FixtureRequest, database: str) -> None:
    """Twenty callers at the same moment: one 200, nineteen 409."""
    with serving(request.getfixturevalue(database)) as service:
        mailout_id = service.ready_mailout()
        with ThreadPoolExecutor(20) as callers:
            answers = list(callers.map(lambda _: service.start(mailout_id), range(20)))
        assert sorted(answer.status for answer in answers) == [200] + [409] * 19
        assert service.nudges == 1
    assert {answer.json["error"] for answer in answers if answer.status == 409} == {
        f"The mailout {mailout_id} is already sending."
    }


def test_a_dry_run_counts_and_changes_nothing(service: HttpStage) -> None:
    """It may be repeated, and the mailout can be started afterwards."""
    mailout_id = service.ready_mailout(recipients=2)
    for _ in range(2):
        answer = service.start(mailout_id, dry_run=True)
        told = {"status": "dry_run", "mailout_id": mailout_id, "name": "news", "planned": 2}
        assert (answer.status, answer.json) == (200, told)
    assert service.stage.get(mailout_id).status == MailoutStatus.READY
    assert service.nudges == 0
    assert service.start(mailout_id).status == 200


def test_what_is_sent_or_a_draft_is_not_started(service: HttpStage) -> None:
    """409 says why. A draft may be tried in a dry run."""
    sent = service.stage.running()
    service.execute(f"UPDATE dispatches SET phase = 'over', result = 'sent' WHERE id = '{sent}'")
    for more in ({}, {"dry_run": True}):
        answer = service.start(sent, **more)
        assert (answer.status, answer.json["error"]) == (409, f"The mailout {sent} is already sent.")
    letter = Letter("Hello", "", "<p>Hello</p>", "Hello")
    draft = service.store.mailouts.create(DEFAULT_TENANT, NewMailout("news", "test", letter, draft=True)).id
    assert service.start(draft).status == 409
    assert service.start(draft, dry_run=True).status == 200


def test_a_mailout_that_cannot_be_sent_stays_ready(service: HttpStage) -> None:
    """Nobody to send to, or a letter that does not compile: 400 says which, before anything is claimed."""
    mailout_id = service.stage.mailout()
    answer = service.start(mailout_id)
    assert answer.status == 400
    assert "no active subscriber" in answer.json["error"]
    service.stage.subscribe([1])
    letter = Letter("Hello {{ wrong", "", "<p>Hello</p>", "Hello")
    broken = service.store.mailouts.create(DEFAULT_TENANT, NewMailout("news", "test", letter, draft=False)).id
    answer = service.start(broken)
    assert answer.status == 400
    assert "{{ wrong" in answer.json["error"]
    assert {service.stage.get(it).status for it in (mailout_id, broken)} == {MailoutStatus.READY}


def test_letters_that_leave_need_their_settings(sqlite_url: str) -> None:
    """Without a postal address nothing leaves the machine, and the answer names the variable."""
    environment = {"SMTP_HOST": "127.0.0.1", "SMTP_FROM_EMAIL": "news@example.com"}
    with serving(sqlite_url, environment) as service:
        answer = service.start(service.ready_mailout())
        assert answer.status == 400
        assert "MAIL_FOOTER_ADDRESS is not set" in answer.json["error"]


def test_a_halted_ledger_starts_nothing(service: HttpStage) -> None:
    """Claims are stopped after a rollback: a mailout that could not go on is not begun."""
    mailout_id = service.ready_mailout()
    service.store.ledger.halt("it was restored from a copy")
    answer = service.start(mailout_id)
    assert (answer.status, answer.json) == (409, {"error": "it was restored from a copy"})


def test_an_unknown_mailout_is_404(service: HttpStage) -> None:
    """Whether the id looks like one or not."""
    for mailout_id in (NOBODY, "x", "../x", "' OR 1=1 --", "\0"):
        assert service.start(mailout_id).status == 404
    assert service.ask("GET", f"/mailouts/{NOBODY}", headers=BEARER).status == 404
    assert service.ask("GET", "/mailouts/%00%ff'", headers=BEARER).status == 404


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mailout_id": ""},
        {"mailout_id": 7},
        {"mailout_id": "x" * 101},
        {"mailout_id": NOBODY, "dry_run": "yes"},
        {"mailout_id": NOBODY, "is_test": 1},
    ],
)
def test_malformed_requests_are_400(service: HttpStage, fields: dict[str, Any]) -> None:
    """The answer names the field."""
    answer = service.ask("POST", "/send-mailout", {"auth_token": SECRET, **fields})
    assert answer.status == 400
    assert re.match("mailout_id|dry_run|is_test", answer.json["error"])


def test_a_test_needs_somebody_to_go_to(service: HttpStage) -> None:
    """is_test without TEST_EMAILS is refused with the name of the setting, and nothing is started."""
    mailout_id = service.ready_mailout()
    answer = service.start(mailout_id, is_test=True)
    assert answer.status == 400
    assert "TEST_EMAILS" in answer.json["error"]
    assert service.stage.get(mailout_id).status == MailoutStatus.READY


BOMBS = {
    "not JSON": b"{",
    "not an object": b"[]",
    "a key twice": b'{"mailout_id": "a", "mailout_id": "b"}',
    "NaN": b'{"mailout_id": NaN}',
    "infinity by size": b'{"mailout_id": 1e999}',
    "not UTF-8": b'{"mailout_id": "\xff"}',
    "33 levels": b'{"a":' * 33 + b"1" + b"}" * 33,
    "100,000 levels": b"[" * 100_000,
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_bad_json_is_400(service: HttpStage, body: bytes) -> None:
    """With the token in a header, and with none at all where it is short: nothing can be told apart yet."""
    for headers in (BEARER, {}):
        answer = service.ask("POST", "/send-mailout", body, headers)
        assert answer.status == (400 if headers or len(body) <= 4096 else 401)
        assert list(answer.json) == ["error"]


# --- bodies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/send-mailout", "/ses-events", "/unsubscribe?token=x"])
@pytest.mark.parametrize("chunked", [False, True])
def test_long_bodies_are_413(service: HttpStage, path: str, chunked: bool) -> None:
    """One byte over 256 KB, with and without a Content-Length; the limit itself is let through."""
    for length, refused in ((LIMIT, False), (LIMIT + 1, True)):
        body = iter([b" " * 65536] * 4 + [b" "] * (length - LIMIT)) if chunked else b" " * length
        assert (service.ask("POST", path, body).status == 413) is refused


def test_a_declared_length_is_refused_before_the_body_comes(service: HttpStage) -> None:
    """The answer is there although not a byte of the 100 MB was sent."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as client:
        client.sendall(b"POST /ses-events HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 413 ")


SERVER = """
    import socket, sys, uvicorn
    from sendonce.adapters.metrics import Metrics
    from sendonce.adapters.stores.sql import open_store
    from sendonce.entrypoints.http import create_app, server_config
    from sendonce.settings import load_settings
    listener = socket.create_server(("127.0.0.1", 0))
    settings = load_settings({"DATABASE_URL": sys.argv[1], "HOME": "/nowhere"}, dotenv=None)
    app = create_app(settings, open_store(sys.argv[1]), Metrics())
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(server_config(app, "127.0.0.1", 0)).run(sockets=[listener])
"""


def test_endless_bodies_leave_the_memory_flat(sqlite_url: str) -> None:
    """128 MB in chunks, no length declared: 413, and the server's peak grows by less than 8 MB."""
    command = [sys.executable, "-c", textwrap.dedent(SERVER), sqlite_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            client = http.client.HTTPConnection("127.0.0.1", int(server.stdout.readline()), timeout=30)
            client.request("GET", "/readyz")
            assert client.getresponse().read()
            before = _peak_kilobytes(server.pid)
            client.request("POST", "/ses-events", iter([b" " * 2**20] * 128), encode_chunked=True)
            assert client.getresponse().status == 413
            client.close()
            assert _peak_kilobytes(server.pid) - before < 8 * 1024
        finally:
            server.terminate()


def _peak_kilobytes(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


# --- looking ------------------------------------------------------------------------------------


def test_a_mailouts_counts_have_their_names(service: HttpStage) -> None:
    """Exactly the eleven names that other programs read, and they balance."""
    mailout_id = service.stage.running(recipients=3)
    told = service.ask("GET", f"/mailouts/{mailout_id}", headers=BEARER).json
    states = ["scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt"]
    assert list(told["counts"]) == ["planned", *states, "delivered", "bounced", "complained"]
    assert told["counts"]["planned"] == 3 == sum(told["counts"][state] for state in states)
    rest = {name: told[name] for name in ("id", "status", "name", "reason", "paused", "phase", "duplicates")}
    assert rest == {
        "id": mailout_id,
        "status": "sending",
        "name": "news",
        "reason": None,
        "paused": False,
        "phase": "running",
        "duplicates": 0,
    }


def test_a_mailout_says_why_nothing_moves(service: HttpStage) -> None:
    """The cause, what to do, the next try, the rate, the end and the workers, under names that stay."""
    mailout_id = service.stage.running()
    told = service.ask("GET", f"/mailouts/{mailout_id}", headers=BEARER).json
    assert told["standstill"] == {
        "cause": "no_worker",
        "detail": "No worker is at work.",
        "fix": "Start one: sendonce worker",
        "next_try_at": None,
    }
    assert (told["rate"], told["estimated_end"], told["workers"]) == (None, None, 0)
    service.store.workers.see(service.stage.worker(), Pulse(2.0))
    told = service.ask("GET", f"/mailouts/{mailout_id}", headers=BEARER).json
    assert (told["standstill"], told["rate"], told["workers"]) == (None, 2.0, 1)
    assert datetime.fromisoformat(told["estimated_end"]).tzinfo is not None


def test_health_tells_nothing_else(service: HttpStage) -> None:
    """Both are open; ready means that the database answers with the right schema."""
    for path in ("/healthz", "/readyz"):
        answer = service.ask("GET", path)
        assert (answer.status, answer.json) == (200, {"status": "ok"})


@pytest.mark.parametrize("damage", ["UPDATE alembic_version SET version_num = '9999'", "DROP TABLE ledger"])
def test_not_ready_without_the_right_database(sqlite_url: str, damage: str) -> None:
    """A newer schema or a missing table: 503, no details; still alive."""
    with serving(sqlite_url) as service:
        service.execute(damage)
        answer = service.ask("GET", "/readyz")
        assert (answer.status, answer.json) == (503, {"status": "unavailable"})
        assert service.ask("GET", "/healthz").status == 200


def test_a_failing_database_is_503_without_internals(service: HttpStage) -> None:
    """The path of the database and what it said are for the log."""
    service.execute("ALTER TABLE mailouts RENAME TO elsewhere")
    for answer in (service.start(NOBODY), service.ask("GET", f"/mailouts/{NOBODY}", headers=BEARER)):
        assert answer.status == 503
        assert answer.json == {"error": "Something that this service needs does not answer. Try again later."}


def test_metrics_need_the_secret(service: HttpStage) -> None:
    """With it, the page of Prometheus."""
    assert service.ask("GET", "/metrics").status == 401
    answer = service.ask("GET", "/metrics", headers=BEARER)
    assert answer.status == 200
    assert 'sendonce_jobs{state="in_doubt"} 0.0' in answer.text
    assert answer.headers["content-type"].startswith("text/plain")


def test_tick_works_for_the_time_it_is_given(sqlite_url: str) -> None:
    """By GET or POST, with either secret; a time out of range is 400."""

    async def tick(seconds: float) -> dict[str, Any]:
        return {"worked": seconds}

    cron = {"Authorization": "Bearer of the cron"}
    with serving(sqlite_url, {"CRON_SECRET": "of the cron"}, tick) as service:
        assert service.ask("GET", "/tick", headers=cron).json == {"worked": 10.0}
        assert service.ask("POST", "/tick?seconds=2.5", headers=BEARER).json == {"worked": 2.5}
        for wrong in ("0", "-1", "301", "nan", "inf", "soon", ""):
            assert service.ask("GET", f"/tick?seconds={wrong}", headers=cron).status == 400
        assert service.ask("GET", "/tick").status == 401
        assert service.ask("GET", "/metrics", headers=cron).status == 401


def test_tick_without_a_worker_is_501(service: HttpStage) -> None:
    """The service says that it cannot, instead of doing nothing."""
    assert service.ask("GET", "/tick", headers=BEARER).status == 501


def test_unexpected_errors_show_no_internals(sqlite_url: str) -> None:
    """A bug is a 500 in two words."""

    async def tick(_seconds: float) -> dict[str, Any]:
        raise RuntimeError("a secret detail")

    with serving(sqlite_url, tick=tick) as service:
        answer = service.ask("GET", "/tick", headers=BEARER)
        assert (answer.status, answer.json) == (500, {"error": "internal error"})


def test_every_answer_has_the_security_headers(service: HttpStage) -> None:
    """Errors too; none sets a cookie or names the server."""
    for method, path in [
        ("GET", "/healthz"),
        ("GET", "/nothing"),
        ("PUT", "/send-mailout"),
        ("GET", "/tick"),
    ]:
        headers = service.ask(method, path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["set-cookie"] is None
        assert headers["server"] is None


def test_unknown_paths_and_methods_are_told_in_json(service: HttpStage) -> None:
    """No redirects either: not even for a slash at the end."""
    assert service.ask("GET", "/nothing").status == 404
    assert service.ask("GET", "/healthz/").status == 404
    answer = service.ask("GET", "/send-mailout")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert list(answer.json) == ["error"]


def test_every_route_is_in_the_openapi_document(service: HttpStage) -> None:
    """And the document promises nothing that is not there; the reference page has them all too."""
    settings = load_settings({"HOME": "/nowhere"}, dotenv=None)
    app = create_app(settings, MemoryStore(), Metrics())
    served = {
        (route.path, method.lower())
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    documented = {(path, method) for path, methods in OPENAPI["paths"].items() for method in methods}
    assert served == documented
    page = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text()
    assert {path for path, _ in served if path.replace("mailout_id", "id") not in page} == set()
    assert service.ask("GET", "/openapi.json").json == OPENAPI
    for section, name in re.findall(r'"#/components/(\w+)/(\w+)"', json.dumps(OPENAPI)):
        assert name in OPENAPI["components"][section]


@pytest.mark.parametrize("digits", [101, 5_000, 100_000])
def test_numbers_without_end_are_bad_requests(service: HttpStage, digits: int) -> None:
    """The refusal is in our words: nobody outside is to set Python's limits."""
    body = b'{"auth_token": "x", "mailout_id": %s}' % (b"7" * digits)
    answer = service.ask("POST", "/send-mailout", body, BEARER)
    assert answer.status == 400
    assert "too long a number" in answer.json["error"]
    assert "sys." not in answer.text
