"""Searches in a database, and a worker's turns over them at times that a test chooses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import sqlalchemy as sa

from sendonce.adapters.stores.schema import serp_operations, serp_results
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.quotas import Limit
from sendonce.domain.prospecting.search_answers import Fetch, ProviderTerms, Submission
from sendonce.domain.prospecting.search_policy import after_fetch, after_submission
from sendonce.domain.prospecting.searches import (
    Batch,
    Budget,
    Change,
    Operation,
    OperationState,
    Region,
    budget_at,
    search_wish,
)

NOW = datetime(2026, 11, 16, 1, tzinfo=UTC)
KAZAN = Region("43", "Казань")
TERMS = ProviderTerms(
    page_size=100,
    first_poll=timedelta(minutes=5),
    results_live=timedelta(hours=12),
    submitting=(Limit(10, 1.0), Limit(600, 60.0)),
    fetching=(Limit(10, 1.0),),
)


class Searching:
    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.operations = store.search_operations
        self.budget = budget(limit=0.0)

    def add(self, *texts: str, pages: int = 1) -> list[str]:
        wishes = [search_wish(text, KAZAN, pages) for text in texts]
        return [added.query.id for added in self.store.searches.add(DEFAULT_TENANT, wishes, NOW)]

    def submits(self, worker: str = "w", most: int = 10, now: datetime = NOW) -> Batch:
        return self.operations.begin_submits(worker, most, TERMS.submitting, self.budget, now)

    def polls(self, worker: str = "w", most: int = 10, now: datetime = NOW) -> Batch:
        return self.operations.begin_polls(worker, most, TERMS.fetching, now)

    def say(self, operation: Operation, said: Submission, now: datetime = NOW) -> bool:
        return self.settle(after_submission(operation, said, TERMS, now), now)

    def told(self, operation: Operation, said: Fetch, now: datetime, place: str | None = None) -> bool:
        return self.settle(after_fetch(operation, said, place, TERMS, now, Random(1)), now)

    def settle(self, change: Change, now: datetime = NOW) -> bool:
        return self.operations.settle([change], now, self.budget) == 1

    def rows(self) -> Sequence[Any]:
        with self.store.database.reading() as tx:
            return tx.execute(sa.select(serp_operations).order_by(serp_operations.c.id)).all()

    def states(self) -> list[str]:
        return [row.state for row in self.rows()]

    def row(self) -> Any:
        (only,) = self.rows()
        return only

    def results(self) -> list[tuple[str, int, str]]:
        order = serp_results.c.operation_id, serp_results.c.position
        with self.store.database.reading() as tx:
            found = tx.execute(sa.select(serp_results).order_by(*order))
            return [(row.url, row.position, row.title) for row in found]

    def state(self) -> OperationState:
        return OperationState(self.row().state)


def budget(limit: float, price: float = 0.02541, now: datetime = NOW) -> Budget:
    return budget_at(now, UTC, price, limit)
