"""PostgreSQL: nothing that copies or compares keys of people may overlap a rotation of them.

A rotation hashes all stored keys anew. Who has read an old key before its commit and writes it after,
or compares a new key with old rows, would lose an opt-out for ever.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.sql.peppers import pepper_for_rotation
from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest
from tests.conformance.stage import Stage, event_of


@pytest.fixture
def store(postgres_url: str) -> Iterator[SqlStore]:
    with closing(open_store(postgres_url)) as opened:
        yield opened


def plan(stage: Stage, _job: ClaimedJob) -> Any:
    mailout = stage.started(3)
    return lambda: stage.store.mailouts.plan_chunk(mailout, "planner", 10)


def claim(stage: Stage, _job: ClaimedJob) -> Any:
    worker = stage.worker()
    return lambda: stage.store.ledger.turn([], ClaimRequest(worker, uuid.uuid4().hex, 5))


DEEDS: dict[str, Callable[[Stage, ClaimedJob], Callable[[], Any]]] = {
    "unsubscribe": lambda stage, job: lambda: stage.store.suppressions.unsubscribe(job.id),
    "resubscribe": lambda stage, job: lambda: stage.store.suppressions.resubscribe(job.id),
    "event": lambda stage, job: lambda: stage.store.events.record(event_of(job)),
    "plan": plan,
    "claim": claim,
}

_WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.mark.parametrize("deed", DEEDS)
def test_it_waits_until_the_rotation_is_over(store: SqlStore, deed: str) -> None:
    stage = Stage(store)
    stage.running(3)
    act = DEEDS[deed](stage, stage.claim_one())
    done = threading.Event()

    def run() -> None:
        act()
        done.set()

    thread = threading.Thread(target=run)
    with store.database.writing() as rotation:
        pepper_for_rotation(store.database, rotation)
        thread.start()
        for _ in range(10_000):
            with store.database.reading() as tx:
                if tx.execute(sa.text(_WAITING)).scalar_one():
                    break
        assert not done.is_set()
    thread.join(20)
    assert done.is_set()
