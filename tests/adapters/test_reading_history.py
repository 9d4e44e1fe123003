"""What is asked again and again costs the same beside a long history and many dispatches that wait.

Work is counted, not timed: the steps of SQLite's machine, and the rows that PostgreSQL read. The sizes of
tables that the planners know are made up, so that they choose as they would beside ten million jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from bench.former_jobs import ASKED, Present, fill

from sendonce.adapters.stores.sql import person_index
from sendonce.adapters.stores.sql.store import SqlStore
from tests.conftest import OpenStore

# Some looks read the last few hundred events: there are more of them in either.
SHORT, LONG = 1_200, 9_000
# A finisher looks at twenty-five at a time.
FEW, MANY = 60, 300
LONG_TABLES = ("planned_jobs", "job_states", "delivery_events", "subscribers", "dispatches")
Work = Callable[[Callable[[], object]], int]


@contextmanager
def counting_steps(store: SqlStore) -> Iterator[Work]:
    """In hundreds of steps of SQLite's machine."""
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    def on_connect(connection: Any, _record: object) -> None:
        connection.set_progress_handler(step, 100)

    engine = store.database.engine
    engine.dispose()
    sa.event.listen(engine, "connect", on_connect)

    def work(do: Callable[[], object]) -> int:
        before = steps[0]
        do()
        return steps[0] - before

    yield work
    sa.event.remove(engine, "connect", on_connect)


_ROWS_READ = (
    "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM pg_stat_user_tables"
)


@contextmanager
def counting_rows(store: SqlStore) -> Iterator[Work]:
    """Rows that PostgreSQL read."""

    def read() -> int:
        with store.database.engine.connect() as connection:
            connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
            connection.commit()
            return int(connection.exec_driver_sql(_ROWS_READ).scalar_one())

    def work(do: Callable[[], object]) -> int:
        before = read()
        do()
        return read() - before

    yield work


def pretend(store: SqlStore) -> None:
    """Let the planner believe that the tables of history are a thousand times as long."""
    with store.database.engine.connect() as connection:
        if store.database.is_sqlite:
            connection.exec_driver_sql(
                "UPDATE sqlite_stat1 SET stat = substr(stat, 1, instr(stat || ' ', ' ') - 1) || '000' || "
                "substr(stat, instr(stat || ' ', ' ')) "
                f"WHERE tbl IN {LONG_TABLES}"
            )
        else:
            connection.exec_driver_sql(
                "UPDATE pg_class SET reltuples = reltuples * 1000 "
                f"WHERE relname IN {LONG_TABLES} AND relkind = 'r'"
            )
        connection.commit()


def work_of(kind: str, open_any_store: OpenStore, jobs: int, waiting: int) -> dict[str, int]:
    with open_any_store(kind) as store:
        assert isinstance(store, SqlStore)
        fill(store, jobs, waiting)
        pretend(store)
        counting = counting_steps if kind == "sqlite" else counting_rows
        with counting(store) as work:
            present = Present(store)
            return {name: _least(work, lambda ask=ask: ask(present)) for name, ask in ASKED.items()}  # type: ignore[misc]


def _least(work: Work, do: Callable[[], object]) -> int:
    """Of a few, for a cache or a plan may have to be made first."""
    return min(work(do) for _ in range(4))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_that_is_asked_often_reads_history(
    kind: str, open_any_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within half as much again, and a handful of rows or steps."""
    monkeypatch.setattr(person_index, "SHELF", 500)
    before = work_of(kind, open_any_store, SHORT, FEW)
    for jobs, waiting in ((LONG, FEW), (SHORT, MANY)):
        after = work_of(kind, open_any_store, jobs, waiting)
        grown = {name: (before[name], after[name]) for name in ASKED if after[name] > 1.5 * before[name] + 20}
        assert grown == {}, f"beside {jobs} former jobs and {waiting} dispatches that wait"
