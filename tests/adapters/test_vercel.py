"""The app for Vercel: what it refuses, and that it sends once although nothing of it lasts."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql import open_store
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.doubts import Standing
from sendonce.entrypoints.vercel import LONGEST_TICK, fit_for_vercel
from sendonce.errors import BadSetting
from sendonce.flows.engine.resolve_doubts import weigh_doubts
from sendonce.settings import Settings, load_settings
from tests.adapters.sandbox_stage import Sandbox
from tests.conformance.stage import Stage

ROOT = Path(__file__).parents[2]
SECRET, CRON_SECRET = "a shared secret of the tests", "a secret of the cron"
BEARER = {"Authorization": f"Bearer {CRON_SECRET}"}
POSTGRES = "postgresql://user:password@db.example.com:6543/postgres"
SUITABLE = {
    "DATABASE_URL": POSTGRES,
    "SES_FROM_EMAIL": "news@example.com",
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "CRON_SECRET": CRON_SECRET,
}


def load(**environ: str) -> Settings:
    return load_settings({"HOME": "/home/ann", **SUITABLE, **environ}, dotenv=None)


def test_what_cannot_be_safe_on_vercel_is_refused_with_the_reason() -> None:
    """All of it at once: a database file, a transport without a fence, a cron without a secret."""
    unfit = load_settings({"HOME": "/home/ann"}, dotenv=None)
    with pytest.raises(BadSetting) as caught:
        fit_for_vercel(unfit)
    problems = str(caught.value).splitlines()
    assert [line.split()[0] for line in problems] == ["DATABASE_URL", "TRANSPORT", "CRON_SECRET"]
    assert "no file outlives its instance" in problems[0]
    with pytest.raises(BadSetting, match="TRANSPORT is smtp"):
        fit_for_vercel(load(TRANSPORT="smtp", SMTP_HOST="smtp.example.com"))


def test_the_platforms_own_aws_credentials_are_not_taken_for_the_users() -> None:
    """Vercel sets AWS_SESSION_TOKEN, and keys without rights where the user has set none."""
    assert fit_for_vercel(load(AWS_SESSION_TOKEN="of the platform")).aws_session_token == ""
    with pytest.raises(BadSetting, match="AWS_ACCESS_KEY_ID is a temporary key"):
        fit_for_vercel(load(AWS_ACCESS_KEY_ID="ASIAPLATFORM"))


def test_a_tick_ends_well_before_the_platform_would_end_it() -> None:
    """Start, work, eight seconds to let go of the wire, and SES's patience fit into maxDuration."""
    limit = json.loads((ROOT / "vercel.json").read_text())["functions"]["api/index.py"]["maxDuration"]
    assert limit >= LONGEST_TICK + 8 + 2 * load().ses_timeout_seconds + 10


class Instance:
    """A function instance: api/index.py in a process and a temporary directory of its own."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        directory.mkdir()
        given = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
        with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
            self.port = listener.getsockname()[1]
            command = [sys.executable, "-m", "uvicorn", "index:app", "--app-dir", str(ROOT / "api")]
            command += ["--fd", str(listener.fileno()), "--lifespan", "off", "--loop", "asyncio"]
            command += ["--log-level", "warning"]
            self.process = subprocess.Popen(
                command,
                env={**given, **environment, "TMPDIR": str(directory)},
                cwd=directory,
                pass_fds=[listener.fileno()],
                stderr=subprocess.PIPE,
            )

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers or {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def end(self) -> str:
        """SIGTERM; what it wrote to its log."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=20)
        return errors.decode()


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    opened = open_store(postgres_url)
    yield opened
    opened.close()


@contextmanager
def instance(directory: Path, environment: dict[str, str]) -> Iterator[Instance]:
    running = Instance(directory, environment)
    try:
        yield running
    finally:
        running.end()


@contextmanager
def sandbox(directory: Path) -> Iterator[Sandbox]:
    running = Sandbox(directory, {"max_rate": 1000, "signature_window": 2})
    try:
        yield running
    finally:
        running.stop()


def environment(ses: Sandbox, postgres_url: str, **more: str) -> dict[str, str]:
    return {
        **ses.addresses["environment"],
        "DATABASE_URL": postgres_url,
        "EXECUTOR_SHARED_SECRET": SECRET,
        "CRON_SECRET": CRON_SECRET,
        "APP_BASE_URL": "https://mail.example.com",
        "UNSUBSCRIBE_SECRET": "signs the links",
        "MAIL_FOOTER_ADDRESS": "Example Ltd, Riga",
        "RATE_LIMIT_PER_SEC": "200",
        "SES_SIGNATURE_WINDOW_SECONDS": "3",
        "IN_DOUBT_QUIET_SECONDS": "1",
        "BURY_INTERVAL_SECONDS": "0.5",
        **more,
    }


def test_a_misconfigured_deployment_tells_strangers_nothing_and_its_log_the_cause(tmp_path: Path) -> None:
    """Every request gets 503; the reason is in the function's log."""
    running = Instance(tmp_path / "instance", {"DATABASE_URL": "sqlite:///sendonce.db"})
    status, answer = running.ask("GET", "/healthz")
    assert status == 503
    assert "SQLite" not in answer["error"]
    assert "DATABASE_URL is an SQLite file" in running.end()


def test_a_mailout_is_started_by_request_and_sent_by_the_cron(
    tmp_path: Path, postgres_url: str, store: SqlStore
) -> None:
    """GET /tick with CRON_SECRET sends what is due, once; without the secret it does nothing."""
    stage = Stage(store)
    stage.subscribe(range(5))
    mailout = stage.mailout()
    with sandbox(tmp_path / "ses") as ses, instance(tmp_path / "i", environment(ses, postgres_url)) as it:
        order = {"mailout_id": mailout, "auth_token": SECRET}
        assert it.ask("POST", "/send-mailout", order)[0] == 200
        assert it.ask("GET", "/tick?seconds=50")[0] == 401
        assert it.ask("GET", "/tick?seconds=50", headers=BEARER) == (200, {"settled": 5})
        assert it.ask("GET", "/tick?seconds=50", headers=BEARER) == (200, {"settled": 0})
        assert it.ask("POST", "/send-mailout", order)[0] == 409
        assert len(ses.log()) == 5
    assert store.jobs.books(mailout).sent == 5
    assert not list((tmp_path / "i" / "sendonce").rglob("workers")), "a tick holds no lock"


def test_what_a_lost_instance_had_claimed_is_fenced_off_and_waits_for_a_persons_word(
    tmp_path: Path, postgres_url: str, store: SqlStore
) -> None:
    """Nobody can prove its death by a lock, but SES's signature window can. That no event came proves
    nothing here: who sleeps between requests cannot say that it listened all the while."""
    stage = Stage(store)
    mailout = stage.started(3)
    with ExitStack() as stack:
        ses = stack.enter_context(sandbox(tmp_path / "ses"))
        lost = Instance(tmp_path / "lost", environment(ses, postgres_url, FAILPOINT="claimed:1"))
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            lost.ask("GET", "/tick?seconds=50", headers=BEARER)
        lost.end()
        claimed = store.jobs.books(mailout).sending
        assert claimed
        assert not ses.log()

        heir = stack.enter_context(instance(tmp_path / "heir", environment(ses, postgres_url)))
        assert heir.ask("GET", "/healthz")[0] == 200
        ses.post("subscribe", {"url": f"http://127.0.0.1:{heir.port}/ses-events"})
        ends = time.monotonic() + 40
        while store.jobs.books(mailout).in_doubt < claimed and time.monotonic() < ends:
            assert heir.ask("GET", "/tick?seconds=50", headers=BEARER)[0] == 200
        quiet = timedelta(seconds=0)
        weighed = weigh_doubts(store, quiet, limit=10)
        assert [found.standing for _, found in weighed] == [Standing.PARKED] * claimed
        told = [doubt.job_id for doubt, _ in weighed]
        store.ledger.resolve(told, sent=False, actor="jane", note="SES has no record of it")
        while store.jobs.books(mailout).sent < 3 and time.monotonic() < ends:
            assert heir.ask("GET", "/tick?seconds=50", headers=BEARER)[0] == 200
        recipients = [row["to"][0] for row in ses.log() if row["job"]]
    assert store.jobs.books(mailout).sent == 3
    assert len(recipients) == len(set(recipients)) == 3
