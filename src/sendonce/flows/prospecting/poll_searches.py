"""Ask for the answers of submitted searches, at any hour: a provider keeps them for half a day only.

An answer is archived as it came before its row says so. Asking is free: what a crash undoes is asked again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from random import Random

from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.prospecting.pipeline import StepCount
from sendonce.domain.prospecting.quotas import PERMIT_LIFE
from sendonce.domain.prospecting.search_answers import Failed, Fetch, Gone, NotNow, Ready
from sendonce.domain.prospecting.search_policy import after_fetch
from sendonce.domain.prospecting.searches import Batch, Change, Operation
from sendonce.ports.engine import Archive
from sendonce.ports.prospecting import ProspectingStore, SearchProvider

GROUP = 10
ARCHIVED_AS = "serp"
_LATE = NotNow("It was not asked for in time.", retry_after=0.0)
_LONGEST_WAIT = 5.0
_dice = Random()  # noqa: S311 (it spreads polls, and hides nothing)


async def poll_searches(
    store: ProspectingStore, provider: SearchProvider, archive: Archive, worker: str, most: int
) -> StepCount:
    taken = ready = failed = 0
    note = ""
    while not note and taken < most:
        began = time.monotonic()
        batch = await asyncio.to_thread(_begin, store, provider, worker, min(GROUP, most - taken))
        if batch.operations:
            fetched = await asyncio.gather(
                *(_fetch(provider, operation, began + PERMIT_LIFE) for operation in batch.operations)
            )
            await asyncio.to_thread(_settle, store, provider, archive, batch.operations, fetched)
            sent = [said for said in fetched if said is not _LATE]
            broken = sum(isinstance(said, NotNow) and said.by_settings for said in sent)
            taken += len(sent) - broken
            ready += sum(isinstance(said, Ready) for said in fetched)
            failed += broken + sum(isinstance(said, Gone | Failed) for said in fetched)
            note = next(filter(None, map(_trouble_for_all, sent or fetched)), "")
        elif not batch.wait or batch.wait > _LONGEST_WAIT:
            break
        if batch.wait and not note:
            await asyncio.sleep(min(batch.wait, _LONGEST_WAIT))
    return StepCount(taken, ready, failed, note)


def _begin(store: ProspectingStore, provider: SearchProvider, worker: str, most: int) -> Batch:
    now = store.ledger.now()
    return store.search_operations.begin_polls(worker, most, provider.terms.fetching, now)


async def _fetch(provider: SearchProvider, operation: Operation, permitted_until: float) -> Fetch:
    assert operation.provider_id is not None
    return await provider.fetch(operation.provider_id) if time.monotonic() <= permitted_until else _LATE


def _trouble_for_all(said: Fetch) -> str:
    return said.reason if isinstance(said, NotNow) and said.for_all else ""


def _settle(
    store: ProspectingStore,
    provider: SearchProvider,
    archive: Archive,
    operations: Sequence[Operation],
    fetched: Sequence[Fetch],
) -> None:
    now = store.ledger.now()
    changes: list[Change] = []
    for operation, said in zip(operations, fetched, strict=True):
        place = None
        if isinstance(said, Ready):
            name = f"{operation.request_hash}-{operation.submits}.xml"
            place = archive.keep(ARCHIVED_AS, name, said.data, operation.submitted_at or now)
        changes.append(after_fetch(operation, said, place, provider.terms, now, _dice))
    failpoint("fetch-after")
    store.search_operations.settle(changes, now)
