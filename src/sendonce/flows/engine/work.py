"""A worker's life: prove that the ledger is sound, bury the dead, send, keep house, leave nothing behind."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from sendonce.domain.engine.senders import OUTAGE, OWN_SENDER, SenderHold
from sendonce.errors import Unavailable
from sendonce.flows.engine.bury import bury_the_dead
from sendonce.flows.engine.check_account import check_account
from sendonce.flows.engine.check_ledger import check_ledger
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.duties import Chore, Duty, attend_to
from sendonce.flows.engine.fence_off import fence_off
from sendonce.flows.engine.finish_dispatches import Finisher
from sendonce.flows.engine.keep_time import TimeKeeper
from sendonce.flows.engine.miss_workers import RollCall
from sendonce.flows.engine.outlet import Outlet
from sendonce.flows.engine.outlets import LOOK_EVERY, Outlets
from sendonce.flows.engine.shortages import shortages
from sendonce.ports.engine import SendingStore
from sendonce.ports.mortality import Expiry, Mortality

log = logging.getLogger(__name__)

PLAN_EVERY = 0.5
PULL_EVERY = 1.0
# A letter that waits for a deferral this short is worth staying for.
SHORT_WAIT = timedelta(seconds=10)


class Steward(Protocol):
    """The duties of the doors beside sending. It is engaged with the worker's id and a pause between chunks,
    whose True means that the process is about to end."""

    def run(self) -> bool:
        """One round; whether anything is still being prepared or planned, by anybody."""

    def has_due(self) -> bool:
        """Whether something is to be started now."""


class Puller(Protocol):
    """Fetches delivery events from a queue; waits there for a while if there are none."""

    async def run_once(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WorkOptions:
    retry_after: float
    """How many seconds later letters are due that a dead worker's provider had put off."""
    retry_within: float
    """No letter waits longer for its next try."""
    bury_every: float
    account_shared: bool
    """Whether others send from the provider's account too."""


class Resolver(Protocol):
    """Settles doubt by evidence."""

    async def run(self) -> int: ...


class Worker:
    """One worker process. ``run`` returns when ``until`` says so or ``stop`` is called.

    ``outlet`` is that of the environment's own sender, ``outlets`` are those of all others. ``resolvers``
    gives those who settle doubt, one for each route, and ``expiries`` what fences off letters of the dead
    that no lock can tell of.
    """

    def __init__(
        self,
        options: WorkOptions,
        *,
        store: SendingStore,
        mortality: Mortality,
        outlet: Outlet,
        outlets: Outlets,
        clock: TimeKeeper,
        expiries: Callable[[], Sequence[Expiry]],
        resolvers: Callable[[], Sequence[Resolver]],
        engage_steward: Callable[[str, Callable[[], bool]], Steward],
        chores: Sequence[Chore] = (),
        puller: Puller | None = None,
    ) -> None:
        self._options = options
        self._store = store
        self._mortality = mortality
        self._outlet = outlet
        self._outlets = outlets
        self._clock = clock
        self._expiries = expiries
        self._resolvers = resolvers
        self._chores = chores
        self._puller = puller
        self._stopping = asyncio.Event()
        self._leaving = threading.Event()
        self._steward = engage_steward(self.id, self._pause)
        self._finisher = Finisher(store, self._pause, options.retry_within)
        self._roll_call = RollCall(store)
        self._planning = True
        self._house_kept_at: int | None = None
        """How many letters were settled when the senders rested and what was over was called so."""

    @property
    def id(self) -> str:
        return self._outlet.id

    def stop(self) -> None:
        self._stopping.set()

    @property
    def was_stopped(self) -> bool:
        """Somebody asked it to leave; it did not leave by itself."""
        return self._stopping.is_set()

    async def run(self, until: Callable[[Worker], Awaitable[bool]] | None = None) -> int:
        """Work until ``until`` is true (asked several times a second); how many letters were settled."""
        await to_daemon_thread(self._prepare)
        sent_last_day = await self._outlet.sent_last_day()
        if sent_last_day is not None and not self._options.account_shared:
            await to_daemon_thread(check_account, self._store, sent_last_day)
        try:
            await self._outlet.open()
            return await self._work(until)
        finally:
            await self._outlet.close()

    def _prepare(self) -> None:
        check_ledger(self._store, self._mortality)
        self._clock.open()
        bury_the_dead(self._store, self._mortality, self._options.retry_after)

    # -- at work -------------------------------------------------------------------------------

    async def _work(self, until: Callable[[Worker], Awaitable[bool]] | None) -> int:
        sending = asyncio.create_task(self._outlet.run())
        duties = asyncio.create_task(attend_to(self._duties()))
        stopping = asyncio.create_task(self._stopping.wait())
        everything: set[asyncio.Task[Any]] = {sending, stopping, duties}
        if until is not None:
            everything.add(asyncio.create_task(self._watch(until)))
        try:
            await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
            self._outlet.stop()
            await asyncio.gather(asyncio.wait({sending}), self._outlets.close())
            for task in everything - {stopping}:
                if task.done() and not task.cancelled():
                    task.result()
        finally:
            self._leaving.set()
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
        return self._settled

    def _duties(self) -> list[Duty]:
        duties = [
            Duty(PLAN_EVERY, self._plan),
            Duty(LOOK_EVERY, self._outlets.look),
            Duty(self._options.bury_every, self._see_to_the_dead),
            *map(Duty.of, self._chores),
        ]
        if self._puller is not None:
            duties.append(Duty(PULL_EVERY, self._puller.run_once))
        return duties

    async def _watch(self, until: Callable[[Worker], Awaitable[bool]]) -> None:
        while True:
            with suppress(Unavailable), shortages():
                if await until(self):
                    return
            await asyncio.sleep(0.1)

    def _pause(self) -> bool:
        """Between two chunks of a long duty; whether this process is about to end."""
        return self._leaving.wait(0.005)

    async def _plan(self) -> None:
        settled = self._settled if self._outlet.idle and self._outlets.resting else None
        if not await to_daemon_thread(self._clock.may_start):
            return
        self._planning = await to_daemon_thread(self._steward.run)
        await to_daemon_thread(self._finisher.run)
        self._house_kept_at = settled

    async def _see_to_the_dead(self) -> None:
        retry_after = self._options.retry_after
        await to_daemon_thread(bury_the_dead, self._store, self._mortality, retry_after, self.id)
        await to_daemon_thread(self._roll_call.call)
        await self._clock.mind()
        if self._clock.may_prove_absence:
            for expiry in await to_daemon_thread(self._expiries):
                await _past_troubles(fence_off(self._store, expiry))
            for resolver in await to_daemon_thread(self._resolvers):
                await _past_troubles(resolver.run())

    # -- questions -----------------------------------------------------------------------------

    @property
    def _settled(self) -> int:
        return self._outlet.settled + self._outlets.settled

    async def idle(self) -> bool:
        """Nothing is on its way, being planned or due; what ended is closed; no job comes due soon."""
        if self._planning or not self._outlet.idle or self._house_kept_at != self._settled:
            return False
        if not await self._outlets.idle(SHORT_WAIT) or await to_daemon_thread(self._steward.has_due):
            return False
        if await self.held():
            return True
        due = await to_daemon_thread(self._store.jobs.oldest_due, OWN_SENDER)
        if due is None:
            return True
        now = await to_daemon_thread(self._store.ledger.now)
        return due - now > SHORT_WAIT

    async def held(self) -> SenderHold | None:
        """The hold of the environment's own sender, unless it is tried again in a moment or an outage, which
        nobody has to mend here."""
        if self._outlet.hold is None:
            return None
        hold = await to_daemon_thread(self._outlets.own_hold)
        if hold is None or hold.code == OUTAGE:
            return None
        now = await to_daemon_thread(self._store.ledger.now)
        return hold if hold.next_try_at - now > SHORT_WAIT else None


async def _past_troubles(look: Awaitable[int]) -> None:
    """A region that does not answer keeps nobody from looking at the doubts of another."""
    try:
        await look
    except Unavailable as exc:
        log.warning("a route cannot be looked at now", extra={"fields": {"error": str(exc)}})
