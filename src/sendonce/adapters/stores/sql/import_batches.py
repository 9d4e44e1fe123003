"""Writing a chunk of an import in as few statements as each database likes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, cast

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.people.people_columns import PeopleColumns

if TYPE_CHECKING:
    import psycopg

# Rows of one INSERT on SQLite: half the time of a statement a row, and while it runs Python can read on.
# SQLite takes 32,766 values at the most.
ROWS_OF_STATEMENT = 1_000
_CELLS_OF_ROW = 7
_ROW = f"({', '.join('?' * _CELLS_OF_ROW)})"

_COPY_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """What can be made ready before the transaction."""

    tenant_id: str
    ids: list[str]
    emails: list[str]
    keys: list[str]
    suppression_keys: list[str]
    names: list[str | None]
    attributes: list[str]

    @classmethod
    def of(cls, tenant_id: str, people: PeopleColumns, suppression_keys: list[str]) -> ImportBatch:
        ids = time_ordered_ids(len(people), time.time_ns() // 1_000_000)
        columns = (people.emails, people.keys, suppression_keys, people.names, people.attributes)
        return cls(tenant_id, ids, *columns)


def write_to_sqlite(
    tx: Connection, database: Database, batch: ImportBatch, statuses: list[str]
) -> tuple[int, int]:
    """How many were inserted and how many updated."""
    # The pages that a chunk touches fit: with the default of 2 MB they are written and read again on the way.
    tx.exec_driver_sql("PRAGMA cache_size = -16384")
    moment = database.moment(database.now(tx))
    columns = (batch.ids, batch.emails, batch.keys, batch.suppression_keys, batch.names, batch.attributes)
    cells = list(chain.from_iterable(zip(*columns, statuses, strict=True)))
    written = 0
    # An inserted row gets the number after the highest; an updated one keeps its own.
    highest = "SELECT coalesce(max(rowid), 0) FROM subscribers"
    before = tx.exec_driver_sql(highest).scalar_one()
    driver = database.driver(tx)
    step = ROWS_OF_STATEMENT * _CELLS_OF_ROW
    for start in range(0, len(cells), step):
        some = cells[start : start + step]
        statement = _many_rows(database.statement("import_subscribers"), len(some) // _CELLS_OF_ROW)
        written += driver.execute(statement, [batch.tenant_id, moment, moment, *some]).rowcount
    inserted = tx.exec_driver_sql(highest).scalar_one() - before
    return inserted, written - inserted


@lru_cache(maxsize=8)
def _many_rows(statement: str, count: int) -> str:
    return statement.replace("(:rows)", ", ".join([_ROW] * count))


def write_to_postgres(
    tx: Connection, database: Database, batch: ImportBatch, statuses: list[str]
) -> tuple[int, int]:
    """How many were inserted and how many updated.

    COPY takes a tenth of the time that the same rows need as parameters. The table for it lives in this
    one transaction, which passes a pooler.
    """
    tx.exec_driver_sql(database.statement("import_stage"))
    _copy(tx, "COPY arriving FROM STDIN", _copy_text(batch, statuses))
    values = {"tenant": batch.tenant_id, "now": database.now(tx)}
    inserted, updated = tx.exec_driver_sql(database.statement("import_subscribers"), values).one()
    return inserted, updated


def _copy(tx: Connection, statement: str, text: str) -> None:
    """COPY is the driver's own, beside SQLAlchemy, and so are its errors."""
    from psycopg import Error

    cursor = tx.connection.cursor()
    try:
        with cast("psycopg.Cursor[object]", cursor).copy(statement.encode()) as copy:
            copy.write(text)
    except Error as exc:
        raise DBAPIError(statement, None, exc) from exc
    finally:
        cursor.close()


def _copy_text(batch: ImportBatch, statuses: list[str]) -> str:
    """The rows in the text format of COPY; the ids, hashes and statuses have nothing to escape in them."""
    given = _escaped([name or "" for name in batch.names])
    names = ["\\N" if name is None else text for name, text in zip(batch.names, given, strict=True)]
    emails, keys, attributes = map(_escaped, (batch.emails, batch.keys, batch.attributes))
    rows = zip(batch.ids, emails, keys, batch.suppression_keys, names, attributes, statuses, strict=True)
    return "\n".join(map("\t".join, rows)) + "\n"


def _escaped(column: list[str]) -> list[str]:
    together = "".join(column)
    if any(char in together for char in "\\\t\n\r"):
        return [cell.translate(_COPY_ESCAPES) for cell in column]
    return column
