"""What tells one database from another, on real files and servers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from sendonce.adapters.stores.sql.store import SqlStore, open_store, upgrade_schema
from sendonce.errors import LedgerRolledBack, Unavailable
from tests.conformance.stage import Stage
from tests.conftest import migrate
from tests.postgres import PostgresServer


@contextmanager
def recorded(url: str) -> Iterator[Stage]:
    """A store that knows its fingerprint, with a letter to send."""
    with closing(open_store(url)) as store:
        upgrade_schema(store.database)
        stage = Stage(store)
        stage.running(2)
        yield stage


def test_a_copy_of_a_file_is_halted(sqlite_url: str, tmp_path: Path) -> None:
    """The original goes on, the copy does not."""
    with recorded(sqlite_url) as stage:
        stage.claim_one()
        assert isinstance(stage.store, SqlStore)
        file = stage.store.database.sqlite_file
        assert file is not None
        for part in file.parent.glob(file.name + "*"):
            shutil.copy(part, tmp_path / part.name)
        stage.claim_one()
    with closing(open_store(f"sqlite:///{tmp_path / file.name}")) as copy, pytest.raises(LedgerRolledBack):
        Stage(copy).claim()


def test_a_file_that_was_replaced_under_a_worker_is_halted(sqlite_url: str) -> None:
    """An older copy is moved into its place: claims would go to a file that nobody sees any more."""
    with recorded(sqlite_url) as stage:
        stage.claim_one()
        file = Path(make_url(sqlite_url).database or "")
        Path(shutil.copy(file, file.with_name("older.db"))).replace(file)
        with pytest.raises(LedgerRolledBack):
            stage.claim()


def test_a_file_that_is_gone_is_said_to_be(sqlite_url: str) -> None:
    """The open file still takes claims, but nobody would ever read them."""
    with recorded(sqlite_url) as stage:
        Path(make_url(sqlite_url).database or "").unlink()
        with pytest.raises(Unavailable, match="is gone"):
            stage.claim()


def test_a_copy_of_a_database_on_the_same_server_is_halted(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    """Same cluster, same timeline, another database."""
    with recorded(postgres_url) as stage:
        stage.claim_one()
    name = make_url(postgres_url).database or ""
    with postgres_server.database(template=name) as url, closing(open_store(url)) as copy:
        with pytest.raises(LedgerRolledBack):
            Stage(copy).claim()
        assert copy.ledger.identity().halted is not None


def test_a_plain_role_reads_all_of_it(plain_role_url: str) -> None:
    """No privileges beyond those on our tables are needed."""
    with recorded(plain_role_url) as stage:
        assert stage.claim_one()
        cluster, timeline, database = (stage.store.fingerprint() or "").split(":")
        assert (cluster.isdigit(), timeline, database.isdigit()) == (True, "00000001", True)


def test_a_role_that_may_not_read_the_cluster_goes_on_with_the_rest(
    plain_role_url: str, postgres_server: PostgresServer
) -> None:
    """As on a managed server that hides it: sending works, and the fingerprint shows what is missing."""
    admin = open_store(str(postgres_server.url_of(make_url(plain_role_url).database or "")))
    with closing(admin), admin.database.writing() as tx:
        tx.exec_driver_sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    with recorded(plain_role_url) as stage:
        assert stage.claim_one()
        cluster, timeline, _ = (stage.store.fingerprint() or "").split(":")
        assert (cluster, timeline) == ("?", "00000001")


def test_a_server_that_takes_no_writes_is_said_to_be_a_standby(postgres_url: str) -> None:
    """The worker waits for it to be promoted, or for an address that is right."""
    with recorded(postgres_url) as stage:
        worker = stage.worker()
        assert isinstance(stage.store, SqlStore)
        with stage.store.database.writing() as tx:
            name = make_url(postgres_url).database
            tx.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        stage.store.database.engine.dispose()
        with pytest.raises(Unavailable, match="as a standby does: set DATABASE_URL to the primary"):
            stage.claim(worker)


@pytest.fixture
def plain_role_url(empty_postgres_url: str, postgres_server: PostgresServer) -> Iterator[str]:
    """A database as its owner sees it, who is nobody else."""
    url = make_url(empty_postgres_url)
    role = f"plain_{url.database}"
    postgres_server.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'plain'")
    postgres_server.execute(f"ALTER DATABASE {url.database} OWNER TO {role}")
    plain = url.set(username=role, password="plain").render_as_string(hide_password=False)
    migrate(plain)
    try:
        yield plain
    finally:
        postgres_server.execute(f"DROP DATABASE {url.database} WITH (FORCE)")
        postgres_server.execute(f"DROP ROLE {role}")
        postgres_server.execute(f"CREATE DATABASE {url.database}")
