"""The duties that need no transport: start what is due, plan, finish what is done, bury dead workers.

Workers do all of this too. A process of its own goes on while they are busy or away, and buries those whose
container is gone for good, as long as it sees their state directory. It sends nothing, canaries included, so
settling doubt stays with the workers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from sendonce.flows.engine.bury import bury_the_dead
from sendonce.flows.engine.check_ledger import check_ledger
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.duties import Chore, Duty, attend_to
from sendonce.flows.engine.finish_dispatches import Finisher
from sendonce.flows.engine.keep_time import TimeKeeper
from sendonce.flows.engine.miss_workers import RollCall
from sendonce.flows.mailouts.steward import Steward
from sendonce.ports.mailouts import MailoutStore
from sendonce.ports.mortality import Mortality

log = logging.getLogger(__name__)

PLAN_EVERY = 0.5


@dataclass(frozen=True, slots=True)
class HouseRules:
    """Seconds: how often the dead are looked for, and after what a letter of theirs is tried again."""

    bury_every: float
    retry_after: float
    longest_retry: float


class Housekeeper:
    """``start_due`` starts the mailouts whose time has come; ``chores`` are done now and then."""

    def __init__(
        self,
        store: MailoutStore,
        mortality: Mortality,
        rules: HouseRules,
        start_due: Callable[[], None],
        chores: Sequence[Chore],
    ) -> None:
        self._store = store
        self._mortality = mortality
        self._rules = rules
        self._chores = chores
        self._roll_call = RollCall(store)
        self._clock = TimeKeeper(store.ledger, None, timedelta())
        self._clock.open()
        self._leaving = threading.Event()  # a long planning run looks at it between two chunks
        self._steward = Steward(
            store,
            planner=f"scheduler-{uuid.uuid4()}",
            pause=self._pause,
            start_due=start_due,
        )
        self._finisher = Finisher(store, self._pause, rules.longest_retry)

    async def run(self, stopping: asyncio.Event) -> None:
        """Until ``stopping`` is set. Raises LedgerRolledBack for a database that nothing may be sent from."""
        bury, plan = Duty(self._rules.bury_every, self._see_to_the_dead), Duty.of((PLAN_EVERY, self._plan))
        duties = asyncio.create_task(attend_to([bury, plan, *map(Duty.of, self._chores)]))
        log.info("the scheduler is at work")
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait({duties, stopped}, return_when=asyncio.FIRST_COMPLETED)
        self._leaving.set()
        for task in (duties, stopped):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await duties

    async def _see_to_the_dead(self) -> None:
        await to_daemon_thread(self._bury)
        await self._clock.mind()

    def _bury(self) -> None:
        check_ledger(self._store, self._mortality)
        bury_the_dead(self._store, self._mortality, self._rules.retry_after)
        self._roll_call.call()

    def _plan(self) -> None:
        if self._clock.may_start():
            self._steward.run()
            self._finisher.run()

    def _pause(self) -> bool:
        return self._leaving.wait(0.005)
