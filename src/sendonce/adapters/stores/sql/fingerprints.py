"""The fingerprint of a database, as each claim compares it with the ledger's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.domain.engine.fingerprints import UNREADABLE
from sendonce.errors import Unavailable


def file_fingerprint(file: Path) -> str:
    """Machine and inode of an SQLite file: a copy has others."""
    try:
        return f"{_machine()}:{file.stat().st_ino}"
    except FileNotFoundError as exc:
        raise Unavailable(f"The database file {file} is gone: put it back, and start again.") from exc


class KnownServer(NamedTuple):
    """A server by the time it started, and the identifier of its cluster."""

    started: datetime | None
    cluster: str


class ServerFingerprint:
    """Cluster, timeline and database of a PostgreSQL server, as far as our role may read them.

    A cluster's identifier is in a file that the server opens for each question, which takes longer than the
    rest of a claim's first statement. So it is asked for only when the server has another start time than
    the one we know it of: a server cannot change it while it runs.
    """

    def __init__(self) -> None:
        self._columns: str | None = None
        self.known = KnownServer(None, UNREADABLE)

    def columns(self, tx: Connection) -> str:
        """Four columns for a SELECT list, which want the parameter ``known_start``."""
        if self._columns is None:
            if tx.exec_driver_sql("SELECT pg_is_in_recovery()").scalar_one():
                raise Unavailable("The database is a standby in recovery: set DATABASE_URL to the primary.")
            self._columns = ", ".join(part if _readable(tx, part) else "NULL" for part in _PARTS)
        return self._columns

    def read(self, row: Sequence[Any], known: KnownServer) -> str:
        """The fingerprint, from what the columns gave where ``known_start`` was that of ``known``."""
        started, cluster, timeline, database = row
        if cluster is not None:
            self.known = known = KnownServer(started, cluster)
        return ":".join((known.cluster, timeline or UNREADABLE, database or UNREADABLE))

    def ask(self, tx: Connection) -> str:
        columns, known = self.columns(tx), self.known
        row = tx.exec_driver_sql(f"SELECT {columns}", {"known_start": known.started}).one()
        return self.read(tuple(row), known)


# pg_control_checkpoint() still shows the old timeline seconds after a promotion; the log's name does not.
_PARTS = (
    "pg_postmaster_start_time()",
    "CASE WHEN pg_postmaster_start_time() IS DISTINCT FROM %(known_start)s::timestamptz"
    " THEN (SELECT system_identifier::text FROM pg_control_system()) END",
    "left(pg_walfile_name(pg_current_wal_lsn()), 8)",
    "(SELECT d.oid::text FROM pg_database d WHERE d.datname = current_database())",
)
# Not allowed, unknown, or not supported, as on some managed servers.
_CANNOT = ("42501", "42883", "0A000")


def _readable(tx: Connection, part: str) -> bool:
    try:
        with tx.begin_nested():
            tx.exec_driver_sql(f"SELECT {part}", {"known_start": None}).all()
    except sa.exc.DBAPIError as exc:
        if getattr(exc.orig, "sqlstate", None) in _CANNOT:
            return False
        raise
    return True


@cache
def _machine() -> str:
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
