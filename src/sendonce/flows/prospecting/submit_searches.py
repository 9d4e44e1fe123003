"""Submit queued searches while the night window is open, as fast as the limits and the budget allow.

A request is marked, counted and paid for before it leaves. What a dead worker has left marked is of unknown
fate: it may have been taken.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.moments import shown_moment
from sendonce.domain.prospecting.nights import NightWindow
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.domain.prospecting.quotas import PERMIT_LIFE
from sendonce.domain.prospecting.search_answers import (
    Accepted,
    FateUnknown,
    NotTaken,
    Refused,
    SearchRequest,
    Submission,
)
from sendonce.domain.prospecting.search_policy import after_submission, fate_unknown
from sendonce.domain.prospecting.searches import Batch, Budget, Operation, budget_at
from sendonce.ports.prospecting import ProspectingStore, SearchProvider

GROUP = 10
_LATE = NotTaken("It was not sent in time, so it waits for its next turn.", retry_after=0.0)
_DEAD = "The worker that submitted it is gone: nobody knows whether the provider took it."
# A limit of a second or a minute is waited for; for one of an hour the next cycle will do.
_LONGEST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class SubmitPlan:
    """``price`` is for one request, ``monthly_limit`` 0 is none, ``most`` requests are sent in a cycle."""

    window: NightWindow
    zone: tzinfo
    price: float
    monthly_limit: float
    worker: str
    most: int


async def submit_searches(store: ProspectingStore, provider: SearchProvider, plan: SubmitPlan) -> StepCount:
    await asyncio.to_thread(_give_up_overdue, store, provider)
    counted: Counter[type[Submission]] = Counter()
    note, broken = "", 0
    while not note and counted.total() < plan.most:
        began = time.monotonic()
        batch, budget, note = await asyncio.to_thread(_begin, store, provider, plan, counted.total())
        if batch.operations:
            told = await asyncio.gather(
                *(_submit(provider, operation, began + PERMIT_LIFE) for operation in batch.operations)
            )
            await asyncio.to_thread(_settle, store, provider, batch.operations, told, budget)
            sent = [said for said in told if said is not _LATE]
            refused = [said for said in sent if isinstance(said, NotTaken) and said.by_settings]
            broken += len(refused)
            counted.update(type(said) for said in sent if said not in refused)
            note = next((said.reason for said in sent or told if isinstance(said, NotTaken)), "")
        elif not batch.wait or batch.wait > _LONGEST_WAIT:
            break
        if batch.wait and not note:
            await asyncio.sleep(min(batch.wait, _LONGEST_WAIT))
    failed = counted[Refused] + counted[FateUnknown] + broken
    return StepCount(counted.total(), counted[Accepted], failed, note)


def _begin(
    store: ProspectingStore, provider: SearchProvider, plan: SubmitPlan, so_far: int
) -> tuple[Batch, Budget, str]:
    """What may be sent now; otherwise why nothing may."""
    now = store.ledger.now()
    budget = budget_at(now, plan.zone, plan.price, plan.monthly_limit)
    if plan.window.closes_at(now) is None:
        opens = shown_moment(plan.window.opens_at(now), plan.zone)
        return Batch(()), budget, f"The window for searches opens at {opens}."
    group = min(GROUP, plan.most - so_far)
    batch = store.search_operations.begin_submits(plan.worker, group, provider.terms.submitting, budget, now)
    if batch.out_of_money:
        return (
            batch,
            budget,
            f"This month's budget of {plan.monthly_limit:g} is spent: SEARCH_MONTHLY_BUDGET.",
        )
    return batch, budget, ""


async def _submit(provider: SearchProvider, operation: Operation, permitted_until: float) -> Submission:
    failpoint("submit-before")
    if time.monotonic() > permitted_until:
        return _LATE
    said = await provider.submit(SearchRequest(operation.text, operation.region_code, operation.page))
    failpoint("submit-after")
    return said


def _settle(
    store: ProspectingStore,
    provider: SearchProvider,
    operations: Sequence[Operation],
    told: Sequence[Submission],
    budget: Budget,
) -> None:
    now = store.ledger.now()
    pairs = zip(operations, told, strict=True)
    changes = [after_submission(operation, said, provider.terms, now) for operation, said in pairs]
    store.search_operations.settle(changes, now, budget)


def _give_up_overdue(store: ProspectingStore, provider: SearchProvider) -> None:
    now = store.ledger.now()
    while late := store.search_operations.overdue_submits(100, now):
        changes = [fate_unknown(operation, provider.terms, "died", _DEAD) for operation in late]
        if not store.search_operations.settle(changes, now):
            break
