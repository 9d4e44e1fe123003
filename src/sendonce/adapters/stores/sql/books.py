"""The books of a dispatch: counters that change in the transaction that moves its jobs.

A transaction gathers what it moves in a ``Tally`` and writes it as its last statement: one row for each
dispatch, and one for the whole ledger, which is all that /metrics reads.

Workers do not wait for each other's commits: on PostgreSQL a dispatch has a row (slot) for each of the
server's processes that counted for it, and the books are their sum. The numbers of the processes are folded,
so that the slots stay few. Two that meet in one wait in line. SQLite has one writer and one slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import dispatch_books
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.jobs import BEFORE_ALL, Books, JobState

B = dispatch_books.c
WHOLE_LEDGER: Final = BEFORE_ALL
STATES = tuple(str(state) for state in JobState)
# The mark of a job, and the column that counts it.
MARKS: Final[Mapping[str, str]] = {
    "delivered_at": "delivered",
    "bounced_at": "bounced",
    "complained_at": "complained",
    "rejected_at": "rejected",
    "duplicate_at": "duplicates",
}
SLOTS = 128
_MOST_AT_ONCE = 1000
COLUMNS = (*STATES, *MARKS.values())
_PLACE = {name: place for place, name in enumerate(COLUMNS)}
_SENDING, _SENT = _PLACE[JobState.SENDING], _PLACE[JobState.SENT]
# The number of the server's process, behind a pooler too: no two transactions have the same one.
_ROW = f"(%s, pg_backend_pid() %% {SLOTS}, {', '.join(['%s::bigint'] * len(COLUMNS))})"


class Tally:
    """What a transaction changes in the books."""

    def __init__(self) -> None:
        self._changes: dict[str, list[int]] = {}

    def plan(self, dispatch_id: str, state: str, count: int) -> None:
        self._of(dispatch_id)[_PLACE[state]] += count

    def move(self, dispatch_id: str, source: str, target: str, count: int = 1) -> None:
        if source != target and count:
            changes = self._of(dispatch_id)
            changes[_PLACE[source]] -= count
            changes[_PLACE[target]] += count

    def change(self, job: Any, changes: Mapping[str, Any]) -> None:
        """What these changes of a job mean. ``job`` is its row as it was before."""
        self.move(job.dispatch_id, job.state, changes.get("state", job.state))
        for mark, counter in MARKS.items():
            if changes.get(mark) is not None and getattr(job, mark) is None:
                self._of(job.dispatch_id)[_PLACE[counter]] += 1

    def withdraw_sent(self, dispatch_id: str) -> int:
        """How many jobs of a dispatch went from sending to sent, if none did else: the caller counts them."""
        changes = self._changes.get(dispatch_id)
        if changes is None or changes != _sent(changes[_SENT]):
            return 0
        del self._changes[dispatch_id]
        return changes[_SENT]

    def _of(self, dispatch_id: str) -> list[int]:
        known = self._changes.get(dispatch_id)
        if known is None:
            known = self._changes[dispatch_id] = [0] * len(COLUMNS)
        return known

    def write(self, database: Database, tx: Connection) -> None:
        changed = {dispatch: counts for dispatch, counts in self._changes.items() if any(counts)}
        if not changed:
            return
        # The whole ledger is the first in the order, for everybody: who shares a slot waits in line.
        changed[WHOLE_LEDGER] = [sum(column) for column in zip(*changed.values(), strict=True)]
        driver, statement = database.driver(tx), database.statement("count_jobs")
        rows = [(dispatch_id, *counts) for dispatch_id, counts in sorted(changed.items())]
        if database.is_sqlite:
            driver.executemany(statement, rows)
        else:
            for start in range(0, len(rows), _MOST_AT_ONCE):
                some = rows[start : start + _MOST_AT_ONCE]
                values = [value for row in some for value in row]
                driver.execute(statement.replace("{rows}", ", ".join([_ROW] * len(some))), values)


def _sent(count: int) -> list[int]:
    changes = [0] * len(COLUMNS)
    changes[_SENDING], changes[_SENT] = -count, count
    return changes


@contextmanager
def counted(database: Database, tx: Connection) -> Iterator[Tally]:
    """Gathers what the block moves, and writes it at its end: the last thing that the transaction does."""
    tally = Tally()
    yield tally
    tally.write(database, tx)


def booked(dispatch_id: sa.Column[str], *columns: str) -> sa.ColumnElement[int]:
    """The sum of some counters, for a statement about dispatches."""
    counts = sum((B[name] for name in columns[1:]), start=B[columns[0]])
    own = sa.select(sa.func.coalesce(sa.func.sum(counts), 0)).where(B.dispatch_id == dispatch_id)
    return own.correlate(dispatch_id.table).scalar_subquery()


def read_books(tx: Connection, dispatch_id: str) -> Books:
    sums = (sa.func.coalesce(sa.func.sum(B[name]), 0).label(name) for name in COLUMNS)
    row = tx.execute(sa.select(*sums).where(B.dispatch_id == dispatch_id)).one()
    counts = {name: int(count) for name, count in row._mapping.items()}
    return Books(planned=sum(counts[state] for state in STATES), **counts)
