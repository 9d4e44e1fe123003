"""Do due work for a bounded time, for whoever is called by a cron."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from sendonce.flows.engine.work import Worker
from sendonce.ports.engine import EngineStore

# Time for a provider to answer the questions that settle doubt, where no letter is due to wait for.
DOUBT_SECONDS = 5.0


async def tick(worker: Worker, seconds: float, *, doubts: Callable[[], bool] | None = None) -> int:
    """Work until nothing is due or the time is over; how many letters were settled.

    While there are ``doubts`` it stays a few seconds longer: for a process that does nothing between ticks.
    """
    began = time.monotonic()

    async def over(worker: Worker) -> bool:
        passed = time.monotonic() - began
        if passed > seconds:
            return True
        if doubts is not None and passed < DOUBT_SECONDS and await asyncio.to_thread(doubts):
            return False
        return await worker.idle()

    return await worker.run(over)


def has_doubts(store: EngineStore, transport: str) -> bool:
    """Whether a letter is being sent or in doubt: by a worker that may be gone."""
    return store.ledger.oldest_claim() is not None or bool(store.ledger.doubts(1, transport=transport))
