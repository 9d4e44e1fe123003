"""Fresh databases for crash runs, and ways to trouble a PostgreSQL server under them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.crash.power_postgres import FragileServer, ServerFiles, fragile
from tests.crash.server_pair import ServerPair, server_pair
from tests.postgres import PostgresServer, running_postgres


@dataclass(frozen=True)
class Databases:
    """``fresh`` gives the URL of a database that nobody has used; a file of it is in the directory given."""

    version: str
    fresh: Callable[[Path], AbstractContextManager[str]]
    restart: Callable[[], None] | None = None
    """Stops the server as a crash would, and starts it again."""
    fragile: Callable[[], AbstractContextManager[FragileServer]] | None = None
    """Gives the server a power switch."""
    pair: Callable[[], AbstractContextManager[ServerPair]] | None = None
    """A server of its own, with a standby."""


@contextmanager
def sqlite_databases() -> Iterator[Databases]:
    @contextmanager
    def fresh(directory: Path) -> Iterator[str]:
        yield f"sqlite:///{directory}/disk/sendonce.db"

    yield Databases(f"SQLite {sqlite3.sqlite_version}", fresh)


@contextmanager
def postgres_databases() -> Iterator[Databases]:
    with running_postgres() as server:
        yield databases_on(server)


def databases_on(server: PostgresServer) -> Databases:
    @contextmanager
    def fresh(directory: Path) -> Iterator[str]:
        with server.database() as url:
            yield url

    version = f"PostgreSQL {str(server.execute('SHOW server_version')).split()[0]}"
    if os.environ.get("TEST_DATABASE_URL"):
        return Databases(version, fresh)
    files = ServerFiles(server)
    return Databases(
        version,
        fresh,
        lambda: files.restart("immediate"),
        lambda: fragile(files),
        lambda: server_pair(files),
    )
