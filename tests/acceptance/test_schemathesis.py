"""The OpenAPI document and the running service, held against each other by schemathesis."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import requests
import schemathesis

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.tokens import sign_token
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from tests.acceptance.house import ask
from tests.conformance.stage import Stage
from tests.crash.world import free_port, quick_start, until

SECRET = "of the service"
BEARER = f"--header=Authorization: Bearer {SECRET}"
IMAGE = "0" * 64
PAGE = "0123456789abcdef0123456789abcdef"
# What is left out, and why. That a schema-valid request is taken: no schema can tell of a signature. That a
# request without a secret gets 401: after twenty such it gets 429, and so it should. The rest is about
# resources that requests create; ours are made elsewhere.
# A tick starts a worker, which takes its time; one is enough. An unsubscription is never refused for what
# comes along with it.
PLAN = """\
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.expected-statuses = ["4xx"]
missing_required_header.enabled = false
ignored_auth.enabled = false
object_level_authorization.enabled = false
use_after_free.enabled = false
ensure_resource_availability.enabled = false

[parameters]
token = "{token}"
"path.mailout_id" = "{mailout_id}"
sha256 = "{image}"

[[operations]]
include-path = "/tick"
generation.max-examples = 1
phases.coverage.enabled = false

[[operations]]
include-path-regex = "^/unsubscribe"
checks.negative_data_rejection.enabled = false
"""


class Service(NamedTuple):
    url: str
    folder: Path
    mailouts: tuple[str, ...]


@pytest.fixture
def service(tmp_path: Path, sqlite_url: str) -> Iterator[Service]:
    """`sendonce serve` with a mailout of each kind, a letter's link and an image."""
    with closing(open_store(sqlite_url)) as store:
        stage = Stage(store)
        running = stage.running(2)
        job = stage.claim_one()
        page = store.mailouts.create(DEFAULT_TENANT, NewMailout("page", "notion", None, source_id=PAGE)).id
        assert store.mailouts.start(page)
        store.assets.put(IMAGE, "image/png", b"\x89PNG")
        mailouts = (running, page, stage.mailout())
    plan = PLAN.format(token=sign_token(job.id, b"u"), mailout_id=running, image=IMAGE)
    (tmp_path / "schemathesis.toml").write_text(plan)
    port = free_port()
    environment = {
        "DATABASE_URL": sqlite_url,
        "STATE_DIR": str(tmp_path / "state"),
        "MAILDIR_PATH": str(tmp_path / "maildir"),
        "PORT": str(port),
        "EXECUTOR_SHARED_SECRET": SECRET,
        "UNSUBSCRIBE_SECRET": "u",
        "TEST_EMAILS": "tester@example.org",
        "SIGN_UP": "true",
        "NOTION_TOKEN": "nobody-listens-there",
        "NOTION_API_URL": "http://127.0.0.1:1",
        "LOG_FORMAT": "json",
    }
    process = quick_start(["serve", "--no-worker"], environment, tmp_path / "serve.log", tmp_path)
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: _ready(url), 30, "the service is ready")
        yield Service(url, tmp_path, mailouts)
    finally:
        process.end()
    assert not [line for line in process.lines() if line["level"] in ("error", "critical")]


def _ready(url: str) -> bool:
    try:
        return ask(f"{url}/readyz").status == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("phases", "headers"),
    [
        pytest.param("coverage", [BEARER], id="with the secret"),
        pytest.param("coverage", [], id="without it"),
        pytest.param("fuzzing", [BEARER], id="anything", marks=pytest.mark.long),
    ],
)
def test_the_service_is_as_its_document_says(service: Service, phases: str, headers: list[str]) -> None:
    """Some hundred requests made from the document, good and bad, with the secret and without: no 5xx,
    and every answer has a status, a type and a shape that the document names."""
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run"]
    command += [f"{service.url}/openapi.json", "--seed=1", "--max-examples=3", "--workers=1", "--no-color"]
    # A tick lasts ten seconds while a page waits for a Notion that is away.
    command += [f"--phases={phases}", "--generation-database=none", "--request-timeout=30", *headers]
    done = subprocess.run(
        command, cwd=service.folder, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "17 selected / 17 total" in done.stdout
    assert ask(f"{service.url}/healthz").status == 200


def test_what_really_happens_is_in_the_document(service: Service) -> None:
    """Mailouts in each phase, a start, a repeat, a button of Notion and a test have the shapes it names."""
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    bearer = {"Authorization": f"Bearer {SECRET}"}
    _running, page, ready = service.mailouts
    for mailout_id in service.mailouts:
        shown = requests.get(f"{service.url}/mailouts/{mailout_id}", headers=bearer, timeout=20)
        assert shown.status_code == 200
        schema["/mailouts/{mailout_id}"]["GET"].validate_response(shown)
    start = schema["/send-mailout"]["POST"]
    bodies: list[tuple[int, dict[str, object]]] = [
        (200, {"mailout_id": ready, "dry_run": True}),
        (200, {"mailout_id": ready, "is_test": True}),
        (200, {"mailout_id": ready}),
        (409, {"mailout_id": ready}),
        (409, {"mailout_id": page}),
        (200, {"source": {"type": "automation"}, "data": {"object": "page", "id": PAGE}}),
        (404, {"mailout_id": "nothing"}),
    ]
    for status, body in bodies:
        answer = requests.post(f"{service.url}/send-mailout", json=body, headers=bearer, timeout=20)
        assert answer.status_code == status, (body, answer.text)
        start.validate_response(answer)
