"""The pepper, read in the transaction that uses it: another process may have rotated it since the last."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import ledger
from sendonce.adapters.stores.sql.database import Database

# PostgreSQL: whoever hashes addresses shares this lock, whoever rotates has it alone. On SQLite a writer is
# alone anyway. Transaction locks pass a pooler.
_ADVISORY_LOCK = 7_337_065_265


def pepper_in_force(database: Database, tx: Connection) -> bytes:
    """The pepper, which stays as it is until the transaction ends."""
    if not database.is_sqlite:
        # A statement of its own: the next one sees what was committed while this one waited.
        tx.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({_ADVISORY_LOCK})")
    return bytes(tx.execute(sa.select(ledger.c.pepper)).scalar_one())


def pepper_for_rotation(database: Database, tx: Connection) -> bytes:
    """The same, once nobody else is using it."""
    if not database.is_sqlite:
        tx.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
    return bytes(tx.execute(sa.select(ledger.c.pepper)).scalar_one())


def look_up_pepper(database: Database) -> bytes:
    """The pepper as it is now; a transaction that relies on it has to look again."""
    with database.reading() as tx:
        return bytes(tx.execute(sa.select(ledger.c.pepper)).scalar_one())
