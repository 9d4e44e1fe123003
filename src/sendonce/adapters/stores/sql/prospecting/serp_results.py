"""Search results on SQL, written in as few statements as each database likes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from itertools import chain

from sqlalchemy.engine import Connection

from sendonce.adapters.stores.sql.arrays import plain_array, text_array
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.prospecting.search_answers import SerpResult
from sendonce.domain.prospecting.searches import Operation

# Rows of one INSERT on SQLite, which takes 32,766 values.
_ROWS = 1_000


def write_results(
    tx: Connection,
    database: Database,
    found: Sequence[tuple[Operation, Sequence[SerpResult]]],
    now: datetime,
) -> None:
    rows = [
        (operation.id, operation.tenant_id, result)
        for operation, results in found
        # One statement cannot write a row twice: the first of two equal URLs stands higher.
        for result in {result.url: result for result in reversed(results)}.values()
    ]
    ids = time_ordered_ids(len(rows), int(now.timestamp() * 1000))
    write = _write_to_sqlite if database.is_sqlite else _write_to_postgres
    for start in range(0, len(rows), _ROWS):
        write(tx, database, ids[start : start + _ROWS], rows[start : start + _ROWS], now)


_Row = tuple[str, str, SerpResult]


def _write_to_sqlite(
    tx: Connection, database: Database, ids: Sequence[str], rows: Sequence[_Row], now: datetime
) -> None:
    moment = database.moment(now)
    cells = list(
        chain.from_iterable(
            (own_id, *_cells(operation, tenant, result), moment)
            for own_id, (operation, tenant, result) in zip(ids, rows, strict=True)
        )
    )
    width = len(cells) // len(rows)
    places = f"({', '.join('?' * width)})"
    statement = database.statement("keep_results").replace("(:rows)", ", ".join([places] * len(rows)))
    database.driver(tx).execute(statement, cells)


def _write_to_postgres(
    tx: Connection, database: Database, ids: Sequence[str], rows: Sequence[_Row], now: datetime
) -> None:
    columns = list(
        zip(*(_cells(operation, tenant, result) for operation, tenant, result in rows), strict=True)
    )
    operations, tenants, urls, domains, kinds, positions, titles, snippets, languages, metadata = columns
    values = {
        "ids": plain_array(ids),
        "operations": plain_array(operations),
        "tenants": text_array(tenants),
        "urls": text_array(urls),
        "domains": text_array(domains),
        "kinds": text_array(kinds),
        "positions": plain_array(positions),
        "titles": text_array(titles),
        "snippets": text_array(snippets),
        "languages": text_array(languages),
        "metadata": text_array(metadata),
        "now": now,
    }
    tx.exec_driver_sql(database.statement("keep_results"), values)


def _cells(operation: str, tenant: str, result: SerpResult) -> tuple[object, ...]:
    metadata = json.dumps({"source": result.source})
    placed = (result.url, result.domain, result.kind, result.position)
    return (operation, tenant, *placed, result.title, result.snippet, result.language, metadata)
