"""Duties: what a worker, a scheduler and a tick do again and again beside each other.

What does not answer now, or runs short now, may do so later; and a mistake of ours in one duty is no reason
to give up the others. Only a database that nothing may be sent from ends them all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial

from sendonce.errors import LedgerRolledBack, Unavailable, WorkerBuried
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.shortages import shortages

log = logging.getLogger(__name__)

Chore = tuple[float, Callable[[], None]]
"""Something to do every so many seconds. It may wait long for a slow service."""


@dataclass(frozen=True, slots=True)
class Duty:
    """Something to do, and how many seconds to rest after it."""

    every: float
    do: Callable[[], Awaitable[object]]

    @classmethod
    def of(cls, chore: Chore) -> Duty:
        every, do = chore
        return cls(every, partial(to_daemon_thread, do))

    async def repeat(self) -> None:
        """Never returns. Raises LedgerRolledBack or WorkerBuried."""
        while True:
            try:
                with shortages():
                    await self.do()
            except (LedgerRolledBack, WorkerBuried):
                raise
            except Unavailable as exc:
                log.warning("a duty failed", extra={"fields": {"error": str(exc)}})
            except Exception as exc:  # noqa: BLE001 (letters go out, whatever becomes of a report)
                error = f"{type(exc).__name__}: {exc}"
                log.error("a duty failed unexpectedly", extra={"fields": {"error": error}})
            await asyncio.sleep(self.every)


async def attend_to(duties: Iterable[Duty]) -> None:
    """Do them all, side by side, until cancelled. Raises LedgerRolledBack or WorkerBuried."""
    tasks = [asyncio.create_task(duty.repeat()) for duty in duties]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
