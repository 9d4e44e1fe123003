"""The pepper, read in the transaction that uses it: another process may have rotated it since the last."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import ledger
from sendonce.adapters.stores.sql.database import Database

# PostgreSQL: whoever hashes addresses, or writes or compares keys that it has read, shares this lock; whoever
# rotates has it alone. On SQLite a writer is alone anyway. Transaction locks pass a pooler. The statement
# open_claim and open_settle, which begin every turn, take it by this number too.
_ADVISORY_LOCK = 7_337_065_265


def hold_pepper(database: Database, tx: Connection) -> None:
    """Keys stay as they are until the transaction ends. To be called before any of them is read."""
    if not database.is_sqlite:
        # A statement of its own: the next one sees what was committed while this one waited.
        tx.exec_driver_sql(f"SELECT pg_advisory_xact_lock_shared({_ADVISORY_LOCK})")


def pepper_in_force(database: Database, tx: Connection) -> bytes:
    """The pepper, which stays as it is until the transaction ends."""
    hold_pepper(database, tx)
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
