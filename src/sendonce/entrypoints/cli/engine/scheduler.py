"""sendonce scheduler: the duties that need no transport, for deployments that keep them apart from sending.

Workers do all of this too. A scheduler beside them goes on while they are busy or away, and buries those
whose container is gone for good, as long as it sees their state directory. It sends nothing, canaries
included, so settling doubt stays with the workers.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from sendonce.entrypoints.cli.context import opened_store, ready_settings
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.duties import Duty, attend_to

if TYPE_CHECKING:
    from sendonce.flows.engine.duties import Chore
    from sendonce.flows.engine.enlist import StateKeeper
    from sendonce.ports.store import Store
    from sendonce.settings import Settings

log = logging.getLogger(__name__)

PLAN_EVERY = 0.5


def scheduler() -> None:
    """Start what is due, plan what is started, finish what is done, bury dead workers. Sends nothing."""
    from sendonce.wiring.stores import state_directory
    from sendonce.wiring.worker import make_chores

    settings = ready_settings()
    with opened_store(settings, make=True) as store:
        chores = make_chores(settings, store)
        keeper = Housekeeper(settings, store, state_directory(settings, store))
        asyncio.run(keeper.run(chores))


class Housekeeper:
    """Does its rounds until SIGTERM, SIGINT or SIGHUP."""

    def __init__(self, settings: Settings, store: Store, state: StateKeeper) -> None:
        from sendonce.flows.engine.keep_time import TimeKeeper
        from sendonce.flows.engine.miss_workers import RollCall
        from sendonce.flows.mailouts.start_due import DueStarter
        from sendonce.flows.mailouts.steward import Steward
        from sendonce.wiring.messages import message_settings
        from sendonce.wiring.sender_check import PATIENTLY, ProviderCheck

        self._store = store
        self._state = state
        self._roll_call = RollCall(store)
        self._clock = TimeKeeper(store.ledger, None, timedelta())
        self._clock.open()
        self._retry_after = settings.retry_base_seconds
        self._bury_every = settings.bury_interval_seconds
        self._leaving = threading.Event()  # a long planning run looks at it between two chunks
        self._steward = Steward(
            store,
            planner=f"scheduler-{uuid.uuid4()}",
            pause=lambda: self._leaving.wait(0.005),
            start_due=DueStarter(
                store,
                lambda: message_settings(settings, store),
                ProviderCheck(settings, PATIENTLY),
            ).run,
            longest_retry=settings.retry_max_seconds,
        )

    async def run(self, chores: list[Chore]) -> None:
        """Raises LedgerRolledBack for a database that nothing may be sent from."""
        from sendonce.entrypoints.worker import stopping_signals

        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in stopping_signals():
            loop.add_signal_handler(number, stopping.set)
        bury, plan = Duty(self._bury_every, self._see_to_the_dead), Duty.of((PLAN_EVERY, self._plan))
        duties = asyncio.create_task(attend_to([bury, plan, *map(Duty.of, chores)]))
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
        from sendonce.flows.engine.bury import bury_the_dead
        from sendonce.flows.engine.check_ledger import check_ledger

        check_ledger(self._store, self._state)
        bury_the_dead(self._store, self._state, self._retry_after)
        self._roll_call.call()

    def _plan(self) -> None:
        if self._clock.may_start():
            self._steward.run()
