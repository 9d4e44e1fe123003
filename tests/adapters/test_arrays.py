"""Arrays that we write ourselves arrive in PostgreSQL as they were."""

from __future__ import annotations

from contextlib import closing

from sendonce.adapters.stores.sql.arrays import plain_array, text_array
from sendonce.adapters.stores.sql.store import open_store

HOSTILE = ["", " ", "NULL", "null", None, '"', "\\", '\\"', "a,b", "{}", "{a,b}", "'; --", "\n\t", "письмо ✉"]


def test_any_text_arrives_as_it_was(postgres_url: str) -> None:
    """Quotes, backslashes, commas, braces, and what only looks like nothing."""
    with closing(open_store(postgres_url)) as store, store.database.reading() as tx:
        arrived = tx.exec_driver_sql("SELECT %s::text[]", (text_array(HOSTILE),)).scalar_one()
        none = tx.exec_driver_sql("SELECT %s::text[]", (text_array([]),)).scalar_one()
    assert arrived == HOSTILE
    assert none == []


def test_numbers_and_ids_need_no_quotes(postgres_url: str) -> None:
    ids = ["01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"]
    with closing(open_store(postgres_url)) as store, store.database.reading() as tx:
        query = "SELECT %s::uuid[]::text[], %s::int[]"
        row = tx.exec_driver_sql(query, (plain_array(ids), plain_array([1, -2]))).one()
    assert tuple(row) == (ids, [1, -2])
