"""A worker's life: prove that the ledger is sound, bury the dead, send, keep house, leave nothing behind."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.outcomes import Accepted, Outcome
from sendonce.domain.engine.retries import RetryPolicy
from sendonce.domain.engine.senders import SenderHold
from sendonce.domain.engine.workers import SEEN_EVERY
from sendonce.errors import Refused, Unavailable
from sendonce.flows.engine.build import ParcelBuilder
from sendonce.flows.engine.bury import bury_the_dead
from sendonce.flows.engine.check_account import check_account
from sendonce.flows.engine.check_ledger import check_ledger
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.duties import Chore, Duty, attend_to
from sendonce.flows.engine.enlist import Enlistment, OwnJournal, StateKeeper
from sendonce.flows.engine.finish_dispatches import Finisher
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_rate import RateKeeper
from sendonce.flows.engine.keep_time import SeenClocks, TimeKeeper
from sendonce.flows.engine.miss_workers import RollCall
from sendonce.flows.engine.own_claims import OwnClaims
from sendonce.flows.engine.pulse import feel_pulse
from sendonce.flows.engine.resolve_doubts import DoubtPolicy, DoubtResolver, Witness
from sendonce.flows.engine.send import SendLoop, SendOptions
from sendonce.flows.engine.shortages import shortages
from sendonce.ports.engine import EngineStore, Meter, Transport

log = logging.getLogger(__name__)

PLAN_EVERY = 0.5
PULL_EVERY = 1.0
RENEW_EVERY = 1.0
LEAVE_WITHIN = 5.0
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
    name: str
    rate_limit: int
    rate_key: str
    sender_key: str
    route: str
    connections: int
    batch_size: int
    retry: RetryPolicy
    doubts: DoubtPolicy
    bury_every: float
    account_shared: bool
    """Whether others send from the provider's account too."""


class Worker:
    """One worker process. ``run`` returns when ``until`` says so or ``stop`` is called."""

    def __init__(
        self,
        *,
        store: EngineStore,
        transport: Transport,
        witness: Witness | None,
        state: StateKeeper,
        message_settings: MessageSettings,
        options: WorkOptions,
        meter: Meter,
        engage_steward: Callable[[str, Callable[[], bool]], Steward],
        chores: Sequence[Chore] = (),
        puller: Puller | None = None,
        clocks: SeenClocks | None = None,
    ) -> None:
        self._store = store
        self._chores = chores
        self._puller = puller
        self._transport = transport
        self._witness = witness
        self._state = state
        self._messages = message_settings
        self._options = options
        self._meter = meter
        self.id = str(uuid.uuid4())
        self._stopping = asyncio.Event()
        self._clock = TimeKeeper(store.ledger, witness, options.doubts.quiet, clocks)
        self._rates = RateKeeper(
            key=options.rate_key,
            worker_id=self.id,
            limit=options.rate_limit,
            permits=store.permits,
            transport=transport,
        )
        self._leaving = threading.Event()
        self._steward = engage_steward(self.id, self._pause)
        self._finisher = Finisher(store, self._pause, options.retry.ceiling)
        self._roll_call = RollCall(store)
        self._enlistment = Enlistment(self.id, options.name, transport.name, options.route, store, state)
        self._planning = True
        self._house_kept_at: int | None = None
        """How many letters were settled when the sender rested and what was over was called so."""
        self._sender: SendLoop | None = None

    def stop(self) -> None:
        self._stopping.set()

    @property
    def was_stopped(self) -> bool:
        """Somebody asked it to leave; it did not leave by itself."""
        return self._stopping.is_set()

    async def run(self, until: Callable[[Worker], Awaitable[bool]] | None = None) -> int:
        """Work until ``until`` is true (asked several times a second); how many letters were settled."""
        await to_daemon_thread(self._prepare)
        await self._rates.ask_quota()
        if self._rates.sent_last_day is not None and not self._options.account_shared:
            await to_daemon_thread(check_account, self._store, self._rates.sent_last_day)
        journal = await to_daemon_thread(self._enlistment.sign_on, 1024 + 8 * self._options.batch_size)
        try:
            await to_daemon_thread(self._rates.open)
            return await self._work(journal, until)
        finally:
            await asyncio.shield(self._leave(journal))

    def _prepare(self) -> None:
        check_ledger(self._store, self._state)
        self._clock.open()
        bury_the_dead(self._store, self._state, self._options.retry.base)
        self._state.sweep(self._options.name, {w.lock_file for w in self._store.workers.open()})

    async def _leave(self, journal: OwnJournal) -> None:
        """A database that hangs is not waited for: the next worker buries this one."""
        try:
            async with asyncio.timeout(LEAVE_WITHIN):
                await to_daemon_thread(self._sign_off, journal)
        except TimeoutError:
            error = f"The database did not answer within {LEAVE_WITHIN:g} seconds."
            log.error("the worker could not sign off", extra={"fields": {"error": error}})

    def _sign_off(self, journal: OwnJournal) -> None:
        try:
            self._rates.close()
        except (Unavailable, Refused) as exc:
            log.error("the permits could not be given back", extra={"fields": {"error": str(exc)}})
        self._enlistment.sign_off(journal)

    # -- at work -------------------------------------------------------------------------------

    async def _work(self, journal: OwnJournal, until: Callable[[Worker], Awaitable[bool]] | None) -> int:
        self._sender = SendLoop(
            SendOptions(self._options.connections, self._options.batch_size, self._options.retry),
            ledger=self._store.ledger,
            claims=OwnClaims(self.id, journal.count.adoption),
            journal=journal,
            letters=ParcelBuilder(self._store.letters, self._messages),
            transport=self._transport,
            pacer=self._rates.pacer,
            gate=_Gate(self._rates, self._clock),
            holding=Holding(self._store.sender_holds, self._options.sender_key),
            meter=_Counting(self._meter, self._rates),
        )
        self._sender.feed.permits_until = self._rates.permits_until
        sending = asyncio.create_task(self._sender.run())
        duties = asyncio.create_task(attend_to(self._duties()))
        stopping = asyncio.create_task(self._stopping.wait())
        everything: set[asyncio.Task[Any]] = {sending, stopping, duties}
        if until is not None:
            everything.add(asyncio.create_task(self._watch(until)))
        try:
            await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
            self._sender.stop()
            await asyncio.wait({sending})
            for task in everything - {stopping}:
                if task.done() and not task.cancelled():
                    task.result()
        finally:
            self._leaving.set()
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
        return self._sender.books.settled

    def _duties(self) -> list[Duty]:
        duties = [
            Duty(PLAN_EVERY, self._plan),
            Duty(RENEW_EVERY, self._renew_rate),
            Duty(SEEN_EVERY, self._show_life),
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
        resting = self._sender is not None and self._sender.books.idle.is_set()
        settled = self._sender.books.settled if self._sender is not None and resting else None
        if not await to_daemon_thread(self._clock.may_start):
            return
        self._planning = await to_daemon_thread(self._steward.run)
        await to_daemon_thread(self._finisher.run)
        self._house_kept_at = settled

    async def _renew_rate(self) -> None:
        await self._rates.ask_quota()
        share = await to_daemon_thread(self._rates.renew)
        if share is not None:
            assert self._sender is not None
            self._rates.pacer.resize(share, time.monotonic())
            self._sender.feed.permits_until = self._rates.permits_until

    async def _show_life(self) -> None:
        assert self._sender is not None
        pulse = feel_pulse(self._rates, self._sender.feed.rest(), self._clock)
        await to_daemon_thread(self._store.workers.see, self.id, pulse)

    async def _see_to_the_dead(self) -> None:
        retry_after = self._options.retry.base
        await to_daemon_thread(bury_the_dead, self._store, self._state, retry_after, self.id)
        await to_daemon_thread(self._roll_call.call)
        await self._clock.mind()
        if self._witness is not None and self._clock.may_prove_absence:
            policy, route = self._options.doubts, self._options.route
            resolver = DoubtResolver(self._store, self._witness, policy, route, lambda: str(uuid.uuid4()))
            await resolver.run()

    # -- questions -----------------------------------------------------------------------------

    async def idle(self) -> bool:
        """Nothing is on its way, being planned or due; what ended is closed; no job comes due soon."""
        if self._sender is None or not self._sender.books.idle.is_set() or self._planning:
            return False
        if self._house_kept_at != self._sender.books.settled:
            return False
        if await to_daemon_thread(self._steward.has_due):
            return False
        if await self.held():
            return True
        due = await to_daemon_thread(self._store.jobs.oldest_due)
        if due is None:
            return True
        now = await to_daemon_thread(self._store.ledger.now)
        return due - now > SHORT_WAIT

    async def held(self) -> SenderHold | None:
        """The hold of the sender, unless it is tried again in a moment."""
        hold = self._sender.hold if self._sender is not None else None
        if hold is None:
            return None
        now = await to_daemon_thread(self._store.ledger.now)
        return hold if hold.next_try_at - now > SHORT_WAIT else None


class _Gate:
    """Claims are made while the account has room for letters and the clocks are right."""

    def __init__(self, rates: RateKeeper, clock: TimeKeeper) -> None:
        self._rates = rates
        self._clock = clock
        self.claim_not_after = clock.claim_not_after
        self.note = clock.note

    def may_claim(self) -> bool:
        return self._rates.may_send() and self._clock.may_claim()


class _Counting:
    """The meter, with the accepted letters counted against the account's quota on the way."""

    def __init__(self, meter: Meter, rates: RateKeeper) -> None:
        self._meter = meter
        self._rates = rates
        self.observe_turn = meter.observe_turn
        self.count_event = meter.count_event
        self.count_unreadable = meter.count_unreadable

    def count_outcome(self, transport: str, outcome: Outcome) -> None:
        if isinstance(outcome, Accepted):
            self._rates.count_accepted()
        self._meter.count_outcome(transport, outcome)
