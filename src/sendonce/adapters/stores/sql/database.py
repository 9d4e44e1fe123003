"""One database: its connections, its transactions, its clock, and its errors in our words."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, make_url

from sendonce.adapters.stores.sql.fingerprints import ServerFingerprint, file_fingerprint
from sendonce.errors import StoreLost, Unavailable

if TYPE_CHECKING:
    import psycopg

# Longer than any of our transactions; a writer that waits longer has met something broken.
BUSY_TIMEOUT_MS = 30_000
# How often a statement is seen before the server is asked to keep its plan: a third of a turn's CPU time.
PREPARED_AFTER = 3


_FAILED_SYNCS = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})

_LAST = "sendonce_last"

log = logging.getLogger(__name__)


def before_commit(tx: Connection, act: Callable[[Connection, list[Any]], None], item: Any) -> None:
    """Let ``act`` have the items of a transaction as the last thing before it commits."""
    tx.info.setdefault(_LAST, {}).setdefault(act, []).append(item)


class Database:
    """``schema`` is where the tables are on PostgreSQL, if not where the role looks by itself."""

    def __init__(self, url: str, schema: str | None = None) -> None:
        self.url = make_url(url)
        self.schema = schema
        self.dialect = self.url.get_backend_name()
        self.engine = _sqlite_engine(self.url) if self.is_sqlite else _postgres_engine(self.url, schema)
        self.server = ServerFingerprint()
        self.sqlite_file = Path(self.url.database or "") if self.is_sqlite else None

    @property
    def is_sqlite(self) -> bool:
        return self.dialect == "sqlite"

    def fingerprint(self) -> str:
        """What tells this database from a copy of it: see domain/engine/fingerprints."""
        file = self.sqlite_file
        if file is not None:
            return file_fingerprint(file)
        with self.reading() as tx:
            return self.server.ask(tx)

    @contextmanager
    def writing(self, *, made_durable: bool = True, at_once: bool = False) -> Iterator[Connection]:
        """One durable transaction. StoreLost when the commit was sent and no answer came.

        Without ``made_durable`` the first statement must see to that on PostgreSQL. With ``at_once`` a
        SQLite file that another writer has locked is not waited for: Unavailable.
        """
        with self._translated(), self.engine.connect() as connection:
            if at_once:
                connection = connection.execution_options(sendonce_at_once=True)
            connection.info.pop(_LAST, None)  # of a transaction that was rolled back
            connection.begin()
            if made_durable and not self.is_sqlite:
                # A server set to synchronous_commit = off would confirm claims it can still lose.
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            try:
                yield connection
                for act, items in connection.info.pop(_LAST, {}).items():
                    act(connection, items)
            except self.engine.dialect.loaded_dbapi.Error:
                connection.invalidate()  # SQLAlchemy sees to its own errors, not to those of driver()
                raise
            try:
                connection.commit()
            except sa.exc.DBAPIError as exc:
                self._end_if_a_sync_failed(exc)
                connection.invalidate()  # it may be in the transaction still, with its locks
                raise StoreLost(f"A commit was not confirmed. {self._explain(exc)}") from exc

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """A transaction in which tables may be replaced: SQLite does not enforce foreign keys in it."""
        with self._translated(), self.engine.connect() as connection:
            driver = self.driver(connection)
            if self.is_sqlite:
                driver.execute("PRAGMA foreign_keys = OFF")
            try:
                with connection.begin():
                    if not self.is_sqlite:
                        connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
                    yield connection
            finally:
                if self.is_sqlite:
                    driver.execute("PRAGMA foreign_keys = ON")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent read that takes no lock."""
        with self._translated(), self.engine.connect() as connection:
            connection = connection.execution_options(sendonce_read_only=True)
            with connection.begin():
                yield connection

    def now(self, connection: Connection) -> datetime:
        """The store's clock: the database server's, or for a file the machine's own."""
        if self.is_sqlite:
            return datetime.now(UTC)
        moment = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
        assert isinstance(moment, datetime)
        return moment.astimezone(UTC)

    def driver(self, connection: Connection) -> Any:
        """The driver's own connection, inside the transaction of ours: for the hot statements."""
        return connection.connection.driver_connection

    def moment(self, value: datetime) -> Any:
        """A time as the hot statements want it."""
        if not self.is_sqlite:
            return value
        # SQLITE_TIME, in a fifth of the time that strftime takes.
        return value.astimezone(UTC).isoformat(" ", "microseconds").removesuffix("+00:00")

    def statement(self, name: str) -> str:
        """A hot statement: plain SQL in a file of its own, one a dialect where they differ."""
        return _load_statement(self.dialect, name)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, self.engine.dialect.loaded_dbapi.Error) as exc:
            self._end_if_a_sync_failed(exc)
            raise Unavailable(self._explain(exc)) from exc
        except sa.exc.TimeoutError as exc:
            raise Unavailable(f"No free connection to the database: {_short(exc)}.") from exc

    def _end_if_a_sync_failed(self, exc: Exception) -> None:
        """After a failed fsync the kernel may have dropped the pages and call the next one a success.

        Nothing that this process believes about its file can be trusted then, so it ends as if it were
        killed; the wire journal tells the next one what was sent. A PostgreSQL server does so by itself.
        """
        cause = _cause(exc)
        if isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) in _FAILED_SYNCS:
            log.critical(
                "The database could not be synced to the disk, so this process ends. Check the disk "
                "(dmesg shows its errors) before you start again.",
                extra={"fields": {"database": str(self.sqlite_file)}},
            )
            os._exit(1)

    def _explain(self, exc: Exception) -> str:
        what = _short(exc)
        # Without its query: libpq takes passwords from there, too.
        where = self.url.set(query={}).render_as_string(hide_password=True)
        for symptom, fix in _FIXES:
            if symptom in what.lower():
                return f"{fix.format(where=where)} (The database said: {what}.)"
        return f"The database {where} failed: {what}."

    def close(self) -> None:
        self.engine.dispose()


_FIXES = (
    ("disk is full", "The disk that holds {where} is full: free some space; nothing was lost."),
    ("no space left", "The disk that holds {where} is full: free some space; nothing was lost."),
    ("recovery is in progress", "{where} is a standby in recovery: set DATABASE_URL to the primary."),
    ("read-only transaction", "{where} takes no writes, as a standby does: set DATABASE_URL to the primary."),
    (
        "readonly database",
        "{where} cannot be written: check its permissions and the disk, or set DATABASE_URL.",
    ),
    ("read-only", "{where} cannot be written: check its permissions and the disk, or set DATABASE_URL."),
    (
        "unable to open database file",
        "{where} cannot be opened: check that its folder exists and is writable.",
    ),
    ("not a database", "{where} is not an SQLite database: set DATABASE_URL to another file."),
    ("malformed", "{where} is damaged: restore a backup, then run 'sendonce db adopt'."),
    ("database is locked", "{where} is locked by another program for over 30 s."),
    ("no such table", "{where} has no sendonce tables: run 'sendonce db upgrade'."),
    ("does not exist", "{where} lacks something: check DATABASE_URL and run 'sendonce db upgrade'."),
    ("authentication failed", "{where} refused the user or password: check DATABASE_URL."),
    ("connection refused", "{where} does not answer: start PostgreSQL or correct DATABASE_URL."),
    ("could not translate host name", "The host in {where} is unknown: correct DATABASE_URL."),
    ("failed to resolve host", "The host in {where} is unknown: correct DATABASE_URL."),
)


def _short(exc: Exception) -> str:
    return " ".join(str(_cause(exc)).split())[:300]


def _cause(exc: Exception) -> BaseException:
    return exc.orig if isinstance(exc, sa.exc.DBAPIError) and exc.orig is not None else exc


@cache
def _load_statement(dialect: str, name: str) -> str:
    folder = files(__package__) / "statements"
    return (folder / f"{name}.{dialect}.sql").read_text(encoding="utf-8")


def _postgres_engine(url: URL, schema: str | None) -> sa.Engine:
    # No session state: it must work through a transaction pooler.
    engine = sa.create_engine(
        url,
        pool_size=4,
        max_overflow=8,
        pool_pre_ping=False,
        connect_args={"prepare_threshold": None, "connect_timeout": 10, "application_name": "sendonce"},
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare_where_safe(connection: psycopg.Connection[Any], _record: object) -> None:
        """Statements are prepared only where nobody stands between us and the server.

        A transaction pooler gives each transaction another session, in which a name may stand for another
        program's statement. It answers with a process number of its own invention, so it can be told.
        """
        answering = connection.execute("SELECT pg_backend_pid()").fetchone()
        connection.rollback()
        if answering == (connection.info.backend_pid,):
            connection.prepare_threshold = PREPARED_AFTER

    if schema is not None:

        @sa.event.listens_for(engine, "begin")
        def _look_in_schema(connection: Connection) -> None:
            """For this transaction only: behind a transaction pooler the session is not ours."""
            name = connection.dialect.identifier_preparer.quote(schema)
            connection.exec_driver_sql(f"SET LOCAL search_path = {name}")

    return engine


def _sqlite_engine(url: URL) -> sa.Engine:
    engine = sa.create_engine(
        url, connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000}
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # An update of many rows keeps a journal of its own for its undoing: in memory, not in a file.
        connection.execute("PRAGMA temp_store = MEMORY")
        # The log is moved into the file every 8 MB, not every 4: the same few pages are written each time,
        # and the commit that has to do it keeps the connections waiting. Nor later: on a small disk that
        # was full for a while, the log would take what is left and never get as far.
        connection.execute("PRAGMA wal_autocheckpoint = 2000")
        # With NORMAL a power cut undoes commits, and undone claims are letters sent twice.
        if connection.execute("PRAGMA synchronous").fetchone() != (2,):
            raise sqlite3.OperationalError("PRAGMA synchronous = FULL did not take effect")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        read_only, at_once = options.get("sendonce_read_only"), options.get("sendonce_at_once")
        driver = connection.connection.driver_connection
        assert driver is not None
        if at_once:
            driver.execute("PRAGMA busy_timeout = 0")
        try:
            driver.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")
        finally:
            if at_once:
                driver.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")

    return engine


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Wait for others that do the same to a new file.

    The switch reads before it asks for the write lock. SQLite answers a reader who asks for that lock with
    "locked" at once, whatever the busy timeout, so of two first starts on one file one could fail.
    """
    give_up = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return
