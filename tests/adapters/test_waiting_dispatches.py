"""What is asked every second costs the same beside a thousand dispatches that wait, by filled tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.jobs import ClaimRequest
from sendonce.domain.engine.senders import HoldOrder
from tests.adapters.test_query_plans import overheard
from tests.conformance.stage import NOBODY, Stage, worker_record

WAITING, OVER = 1000, 3000
_COLUMNS = "id, tenant_id, kind, owner_id, phase, created_at, updated_at, started_at, due_from"
_ROWS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
    "SELECT printf('01900000-0000-7000-{part}-%012d', i), 'default', 'batch', 'owner', '{phase}', {at}, "
    "{at}, {at}, {due} FROM n",
    "postgresql": "SELECT ('01900000-0000-7000-{part}-' || lpad(i::text, 12, '0'))::uuid, 'default', "
    "'batch', 'owner', '{phase}', {at}::timestamptz, {at}, {at}, {due}::timestamptz "
    "FROM generate_series(1, {count}) i",
}


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def filled(request: pytest.FixtureRequest) -> Iterator[SqlStore]:
    """A thousand dispatches wait for next year, many more are over, and one is under way."""
    with closing(open_store(request.getfixturevalue(request.param))) as store:
        Stage(store).running(100)
        rows = _ROWS[store.database.dialect]
        with store.database.writing() as tx:
            for part, phase, due, count in (
                ("8000", "running", "'2099-01-01 00:00:00.000000'", WAITING),
                ("9000", "over", "NULL", OVER),
            ):
                at = "'2026-01-01 00:00:00.000000'"
                made = rows.format(part=part, phase=phase, due=due, count=count, at=at)
                tx.exec_driver_sql(f"INSERT INTO dispatches ({_COLUMNS}) {made}")
        with store.database.engine.connect() as connection:
            connection.exec_driver_sql("ANALYZE")
            connection.commit()
        store.workers.register(worker_record(NOBODY))
        yield store


ASKED: dict[str, Callable[[SqlStore], object]] = {
    "which may be over": lambda store: store.dispatches.to_finish(),
    "which are being prepared": lambda store: store.mailouts.being_prepared(),
    "when the next is due": lambda store: store.jobs.oldest_due(),
    "which are half planned": lambda store: store.dispatches.abandoned(),
}


# They hold the few dispatches that have something to do, so a walk through them is short.
OF_THE_BUSY = ("dispatches_awake", "dispatches_to_finish")


def walks(store: SqlStore, statement: str, values: Any) -> list[str]:
    """The steps of a plan that walk through all dispatches, or all that wait."""
    with store.database.writing() as tx:
        driver = store.database.driver(tx)
        if store.database.is_sqlite:
            steps = [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        else:
            steps = [row[0] for row in driver.execute(f"EXPLAIN {statement}", values)]
    assert any("dispatches" in step for step in steps), steps
    through = [step for step in steps if "SCAN dispatches" in step or "Seq Scan on dispatches" in step]
    return [step for step in through if not any(index in step for index in OF_THE_BUSY)]


@pytest.mark.parametrize("question", ASKED)
def test_dispatches_that_wait_are_not_walked_through(question: str, filled: SqlStore) -> None:
    with overheard(filled.database.engine) as statements:
        ASKED[question](filled)
    about = [(text, values) for text, values in statements if "dispatches" in text]
    assert about
    for text, values in about:
        assert walks(filled, text, values) == []


def test_nor_in_a_turn(filled: SqlStore) -> None:
    """Its statements are plain SQL on the driver's own connection."""
    now = filled.ledger.now()
    if filled.database.is_sqlite:
        moment = filled.database.moment(now)
        in_turn, wake, lull = (51, ""), (moment,), (NOBODY, moment)
        assert walks(filled, filled.database.statement("open_claim"), ("", moment, "")) == []
    else:
        in_turn, wake, lull = {"limit": 51, "sender_id": ""}, {"now": now}, {"dispatch": NOBODY, "now": now}  # type: ignore[assignment]
    for name, values in (("in_turn", in_turn), ("wake", wake), ("lull", lull)):
        assert walks(filled, filled.database.statement(name), values) == []
    assert len(filled.ledger.turn([], ClaimRequest(NOBODY, "token", 5)).claimed) == 5


def test_a_claim_for_a_held_sender_writes_nothing(filled: SqlStore) -> None:
    """Its dispatches stay awake, however many claims find the sender held."""
    assert len(filled.ledger.turn([], ClaimRequest(NOBODY, "token", 5, sender="held")).claimed) == 5
    filled.sender_holds.hold("held", HoldOrder("suspended", "the account is suspended", 3600))
    with closing(filled.database.engine.connect()) as other:
        before = seen_of_writes(other)
        for _ in range(2):
            assert filled.ledger.turn([], ClaimRequest(NOBODY, "more", 5, 1, sender="held")).claimed == ()
        assert seen_of_writes(other) == before


def seen_of_writes(connection: sa.Connection) -> Any:
    """What changes when another connection writes to a dispatch."""
    if connection.dialect.name == "sqlite":
        seen = connection.exec_driver_sql("PRAGMA data_version").scalar_one()
    else:
        seen = connection.exec_driver_sql("SELECT sum(xmin::text::bigint) FROM dispatches").scalar_one()
    connection.rollback()
    return seen
