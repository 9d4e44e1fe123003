"""A database in trouble: one error of ours, with what happened, where, and what to do; nothing is lost."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.sql import database as database_module
from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import Unavailable
from tests.conformance.stage import people
from tests.postgres import PostgresServer, quick_folder

NOBODY = 65534


def add_people(store: SqlStore, numbers: range) -> None:
    store.subscribers.upsert(DEFAULT_TENANT, people(numbers))


def head_count(store: SqlStore) -> int:
    return sum(store.subscribers.count(DEFAULT_TENANT).values())


@contextmanager
def without_privileges() -> Iterator[None]:
    """File permissions mean nothing to root: be somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = quick_folder("sendonce-ro-")
    folder.chmod(0o755)
    yield folder
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def test_a_file_that_cannot_be_written(open_folder: Path) -> None:
    """The error names the file and says what to check; afterwards all that was written is there."""
    url = f"sqlite:///{open_folder}/sendonce.db"
    with closing(open_store(url)) as store:
        add_people(store, range(3))
    (open_folder / "sendonce.db").chmod(0o444)
    open_folder.chmod(0o555)
    with without_privileges(), pytest.raises(Unavailable, match=r"sendonce\.db cannot be .*: check"):
        open_store(url)
    open_folder.chmod(0o755)
    with closing(open_store(url)) as store:
        assert head_count(store) == 3


def test_a_file_that_stops_being_writable(open_folder: Path) -> None:
    """A disk that was mounted read-only while we ran: reading goes on, writing is refused with the fix."""
    url = f"sqlite:///{open_folder}/sendonce.db"
    with closing(open_store(url)) as store:
        add_people(store, range(3))

        @sa.event.listens_for(store.database.engine, "connect")
        def read_only(connection: sqlite3.Connection, _record: object) -> None:
            connection.execute("PRAGMA query_only = ON")

        store.database.engine.dispose()
        with pytest.raises(Unavailable, match="cannot be written: check its permissions and the disk"):
            add_people(store, range(3, 6))
        assert head_count(store) == 3


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(Unavailable, match=r"taken/sendonce\.db cannot be made: "):
        open_store(f"sqlite:///{tmp_path}/taken/sendonce.db")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """It is left as it was."""
    file = tmp_path / "letter.txt"
    file.write_text("Dear Jane, " * 500)
    with pytest.raises(Unavailable, match=r"letter\.txt is not an SQLite database: set DATABASE_URL"):
        open_store(f"sqlite:///{file}")
    assert file.read_text() == "Dear Jane, " * 500


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    """SQLite cannot open it; we say so."""
    (tmp_path / "sendonce.db").mkdir()
    with pytest.raises(Unavailable, match=r"sendonce\.db cannot be opened: check"):
        open_store(f"sqlite:///{tmp_path}/sendonce.db")


def test_a_damaged_file(sqlite_url: str) -> None:
    """Torn pages are named as damage, with the way back."""
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    data = bytearray(file.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    file.write_bytes(data)
    with pytest.raises(Unavailable, match="is damaged: restore a backup, then run 'sendonce db adopt'"):
        open_store(sqlite_url)


def test_a_full_disk(sqlite_url: str) -> None:
    """The import that does not fit is undone as a whole; what was there before stays, and space heals it."""
    with closing(open_store(sqlite_url)) as store:
        add_people(store, range(10))

        @sa.event.listens_for(store.database.engine, "connect")
        def fill_up(connection: sqlite3.Connection, _record: object) -> None:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")

        store.database.engine.dispose()
        with pytest.raises(Unavailable, match=r"disk that holds .*sendonce\.db is full: free some space"):
            add_people(store, range(2000))
        assert head_count(store) == 10
        sa.event.remove(store.database.engine, "connect", fill_up)
        store.database.engine.dispose()
        add_people(store, range(2000))
        assert head_count(store) == 2000


def test_a_file_that_somebody_else_keeps_locked(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """We wait, and then say who is in the way."""
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_MS", 50)
    file = sqlite_url.removeprefix("sqlite:///")
    with (
        closing(open_store(sqlite_url)) as store,
        closing(sqlite3.connect(file, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match=r"sendonce\.db is locked by another program"):
            add_people(store, range(1))
        other.execute("ROLLBACK")
        add_people(store, range(1))


def test_a_server_that_does_not_answer() -> None:
    """The error names the server and the fix, and not the password."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    url = f"postgresql+psycopg://jane:secret-word@127.0.0.1:{port}/sendonce"
    with pytest.raises(Unavailable, match=f"127.0.0.1:{port}.* does not answer: start PostgreSQL") as caught:
        open_store(url)
    assert "secret-word" not in str(caught.value)


def test_a_database_that_is_not_there(postgres_server: PostgresServer) -> None:
    """The server is there, the database is not."""
    with pytest.raises(Unavailable, match=r"no_such_database.*check DATABASE_URL"):
        open_store(postgres_server.url_of("no_such_database"))


def test_a_server_that_drops_its_connections(postgres_url: str, postgres_server: PostgresServer) -> None:
    """One call fails in our words, what was committed stays, and the next call works."""
    with closing(open_store(postgres_url)) as store:
        add_people(store, range(3))
        name = store.database.url.database
        postgres_server.execute(
            f"SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        with pytest.raises(Unavailable, match=r"terminating connection|closed the connection"):
            add_people(store, range(6))
        assert head_count(store) == 3
        add_people(store, range(6))
        assert head_count(store) == 6


def test_a_read_only_server(postgres_url: str) -> None:
    """A standby, or a database that its owner closed for writing."""
    with closing(open_store(postgres_url)) as store:
        with store.database.writing() as tx:
            name = store.database.url.database
            tx.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        store.database.engine.dispose()
        with pytest.raises(Unavailable, match="takes no writes"):
            add_people(store, range(1))
        assert head_count(store) == 0


def test_no_error_shows_a_password_from_the_query() -> None:
    """libpq takes one from there, and people write it there."""
    url = "postgresql+psycopg://user@127.0.0.1:1/db?password=PLANTED&sslpassword=PLANTED"
    with pytest.raises(Unavailable) as caught:
        open_store(url)
    assert "127.0.0.1" in str(caught.value)
    assert "PLANTED" not in str(caught.value)
