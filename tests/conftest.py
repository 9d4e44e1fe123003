"""Databases for the tests: each test gets one that nobody has used, on a server that the session shares."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.store import open_store, upgrade_schema
from sendonce.ports.store import Store
from tests.conformance.backdoor import check_counters
from tests.conformance.weak_store import WeakStore
from tests.postgres import PostgresServer, quick_folder, running_postgres

# How long an example takes says more of the machine than of the code. Every day the same examples are tried:
# a failure is of the change that was made. `make test-long` looks for new ones.
settings.register_profile("everyday", deadline=None, derandomize=True, database=None)
settings.register_profile("search", deadline=None, max_examples=1_000)
settings.load_profile("everyday")

STORES = ("memory", "weak", "sqlite", "postgres")

OpenStore = Callable[[str], AbstractContextManager[Store]]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a database with the schema and nothing else, to be copied."""
    with postgres_server.database() as url:
        migrate(url)
        yield url.partition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="session")
def migrated_sqlite() -> Iterator[Path]:
    """A file with the schema and nothing else, to be copied."""
    folder = quick_folder("sendonce-db-")
    migrate(f"sqlite:///{folder}/template.db")
    yield folder / "template.db"
    shutil.rmtree(folder)


def migrate(url: str) -> None:
    """The schema in a database that will be copied: its copies are no strangers to the ledger."""
    database = Database(url)
    upgrade_schema(database)
    with database.writing() as tx:
        tx.exec_driver_sql("UPDATE ledger SET fingerprint = NULL")
    database.close()


@contextmanager
def sqlite_copy(template: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=template.parent) as folder:
        shutil.copy(template, Path(folder) / "sendonce.db")
        yield f"sqlite:///{folder}/sendonce.db"


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, migrated_postgres: str) -> Iterator[str]:
    """A fresh PostgreSQL database with the schema."""
    with postgres_server.database(template=migrated_postgres) as url:
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh PostgreSQL database with nothing in it."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def sqlite_url(migrated_sqlite: Path) -> Iterator[str]:
    """A fresh SQLite file with the schema."""
    with sqlite_copy(migrated_sqlite) as url:
        yield url


@pytest.fixture(scope="session")
def open_any_store(request: pytest.FixtureRequest) -> OpenStore:
    """Opens a fresh store of one of the ``STORES``, as often as one likes; ``hasty`` is the weak one whose
    listings are looked at before they have caught up."""

    @contextmanager
    def fresh(kind: str) -> Iterator[Store]:
        if kind == "memory":
            yield MemoryStore()
            return
        if kind in ("weak", "hasty"):
            yield WeakStore(lag=25) if kind == "hasty" else WeakStore().with_patience()
            return
        if kind == "sqlite":
            database = sqlite_copy(request.getfixturevalue("migrated_sqlite"))
        else:
            server: PostgresServer = request.getfixturevalue("postgres_server")
            database = server.database(template=request.getfixturevalue("migrated_postgres"))
        with database as url:
            store = open_store(url)
            try:
                yield store
                check_counters(store)
            finally:
                store.close()

    return fresh


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, open_any_store: OpenStore) -> Iterator[Store]:
    """Each of the stores in turn, held to the same claims."""
    with open_any_store(request.param) as opened:
        yield opened


@pytest.fixture(params=("sqlite", "postgres"))
def shared_store(request: pytest.FixtureRequest, open_any_store: OpenStore) -> Iterator[Store]:
    """The stores in which writers meet."""
    with open_any_store(request.param) as opened:
        yield opened
