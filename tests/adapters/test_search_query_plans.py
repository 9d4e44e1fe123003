"""What a cycle asks of the database costs the same beside a million requests of former nights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from sendonce.adapters.stores.schema import serp_operations
from sendonce.adapters.stores.sql.store import SqlStore
from tests.adapters.test_query_plans import overheard
from tests.conformance.search_stage import NOW, Searching
from tests.conftest import OpenStore

LATER = NOW + timedelta(minutes=10)
ASKED: dict[str, Callable[[Searching], object]] = {
    "what to submit": lambda it: it.submits(now=LATER),
    "what to poll": lambda it: it.polls(now=LATER),
    "what to read": lambda it: it.operations.begin_ingests("w", 10, LATER),
    "who is late": lambda it: it.operations.overdue_submits(10, LATER),
    "what comes next": lambda it: it.operations.next_due(),
}
FORMER = 1_000


def with_former_nights(store: SqlStore) -> Searching:
    searching = Searching(store)
    searching.add(*(f"насосы {number}" for number in range(FORMER)))
    with store.database.writing() as tx:
        over = {"state": "done", "settled_at": NOW, "due_at": NOW}
        tx.execute(serp_operations.update().values(**over))
    searching.add(*(f"кабель {number}" for number in range(20)))
    with store.database.writing() as tx:
        tx.exec_driver_sql("ANALYZE")
    return searching


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def searching(request: pytest.FixtureRequest, open_any_store: OpenStore) -> Iterator[Searching]:
    with open_any_store(request.param) as store:
        assert isinstance(store, SqlStore)
        yield with_former_nights(store)


@pytest.mark.parametrize("question", ASKED)
def test_only_open_requests_are_looked_at(question: str, searching: Searching) -> None:
    engine = searching.store.database.engine
    with overheard(engine) as statements:
        ASKED[question](searching)
    looks = [
        it for it in statements if "serp_operations" in it[0] and "ORDER BY" in it[0] and "due_at" in it[0]
    ]
    assert looks
    explain = "EXPLAIN QUERY PLAN" if searching.store.database.is_sqlite else "EXPLAIN"
    with closing(engine.connect()) as connection:
        for statement, values in looks:
            plan = "\n".join(str(row) for row in connection.exec_driver_sql(f"{explain} {statement}", values))
            if "serp_queries" in statement:
                assert "SCAN" not in plan.replace("SCAN CONSTANT", "")
            else:
                assert "serp_operations_open" in plan, plan
