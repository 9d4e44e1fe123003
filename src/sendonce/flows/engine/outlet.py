"""One sender at work in this process, with all that its letters leave through.

In the ledger's eyes an outlet is a worker: it has its own row, in which its claims are counted, its own
locked journal, its own pacing and its own trouble. What proves the death of its letters goes by its
transport, and what proves their absence goes by its route; so no outlet has two of either.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from dataclasses import dataclass
from typing import Any

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.outcomes import Accepted, Outcome
from sendonce.domain.engine.retries import RetryPolicy
from sendonce.domain.engine.senders import OWN_SENDER, HoldOrder, SenderHold, away_seconds
from sendonce.domain.engine.workers import SEEN_EVERY, Rest
from sendonce.errors import RefusedByRule, Unavailable
from sendonce.flows.engine.build import ParcelBuilder
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.duties import Duty, attend_to
from sendonce.flows.engine.enlist import Enlistment
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_rate import RateKeeper
from sendonce.flows.engine.keep_time import TimeKeeper
from sendonce.flows.engine.own_claims import OwnClaims
from sendonce.flows.engine.pulse import feel_pulse
from sendonce.flows.engine.send import SendLoop, SendOptions
from sendonce.ports.engine import Meter, SendingStore, Timetable, Transport
from sendonce.ports.mortality import Life, Mortality

log = logging.getLogger(__name__)

RENEW_EVERY = 1.0
LEAVE_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class OutletOptions:
    """``name`` is that of the worker in lists and of its file; no other worker of the machine has it."""

    name: str
    rate_limit: int
    rate_key: str
    sender_key: str
    route: str
    connections: int
    batch_size: int
    retry: RetryPolicy
    sender_id: str = OWN_SENDER
    quiet_time: float | None = None
    """Seconds that the sender stays in its second region when this one is in trouble; None: it has none."""


class Outlet:
    """``open``, then ``run`` until ``stop``; ``close`` in any case."""

    def __init__(
        self,
        options: OutletOptions,
        *,
        store: SendingStore,
        mortality: Mortality,
        transport: Transport,
        message_settings: MessageSettings,
        timetable: Timetable | None,
        clock: TimeKeeper,
        meter: Meter,
    ) -> None:
        self.id = str(uuid.uuid4())
        self._options = options
        self._store = store
        self._mortality = mortality
        self._transport = transport
        self._letters = ParcelBuilder(store.letters, message_settings, timetable)
        self._clock = clock
        self._meter = meter
        self._rates = RateKeeper(
            key=options.rate_key,
            worker_id=self.id,
            limit=options.rate_limit,
            permits=store.permits,
            transport=transport,
        )
        self._enlistment = Enlistment(
            self.id, options.name, transport.name, options.route, options.sender_id, store, mortality
        )
        self._journal: Life | None = None
        self._sender: SendLoop | None = None
        self._stopped = False

    async def sent_last_day(self) -> int | None:
        """What the provider counted for the whole account, if it says so."""
        await self._rates.ask_quota()
        return self._rates.sent_last_day

    async def open(self) -> None:
        """Become a worker of the ledger, with a share of the rate."""
        await self._rates.ask_quota()
        self._journal = await to_daemon_thread(self._sign_on)
        await to_daemon_thread(self._rates.open)
        self._sender = self._engage(self._journal)
        if self._stopped:
            self._sender.stop()

    def _sign_on(self) -> Life:
        known = {worker.lock_file for worker in self._store.workers.open()}
        self._mortality.sweep(self._options.name, known)
        return self._enlistment.sign_on(1024 + 8 * self._options.batch_size)

    def _engage(self, journal: Life) -> SendLoop:
        sender = SendLoop(
            SendOptions(self._options.connections, self._options.batch_size, self._options.retry),
            ledger=self._store.ledger,
            claims=OwnClaims(self.id, journal.count.adoption, self._options.sender_id),
            journal=journal,
            letters=self._letters,
            transport=self._transport,
            pacer=self._rates.pacer,
            gate=_Gate(self._rates, self._clock),
            holding=Holding(self._store.sender_holds, self._options.sender_key, self._options.quiet_time),
            meter=_Counting(self._meter, self._rates),
        )
        sender.feed.permits_until = self._rates.permits_until
        return sender

    async def run(self) -> None:
        """Send until ``stop`` is called; everything that is known is settled when this returns."""
        sender = self._sender
        assert sender is not None, "open it first"
        sending = asyncio.create_task(sender.run())
        duties = asyncio.create_task(
            attend_to([Duty(RENEW_EVERY, self._renew_rate), Duty(SEEN_EVERY, self._show_life)])
        )
        both: set[asyncio.Task[Any]] = {sending, duties}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            sender.stop()
            await asyncio.wait({sending})
            for task in both:
                if task.done() and not task.cancelled():
                    task.result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    def stop(self) -> None:
        """Claim no more, give back what is not on the wire, let the rest finish."""
        self._stopped = True
        if self._sender is not None:
            self._sender.stop()

    async def close(self) -> None:
        if self._journal is not None:
            await asyncio.shield(self._leave(self._journal))

    async def _leave(self, journal: Life) -> None:
        """A database that hangs is not waited for: the next worker buries this one."""
        try:
            async with asyncio.timeout(LEAVE_WITHIN):
                await to_daemon_thread(self._sign_off, journal)
        except TimeoutError:
            error = f"The database did not answer within {LEAVE_WITHIN:g} seconds."
            log.error("the worker could not sign off", extra={"fields": {"error": error}})

    def _sign_off(self, journal: Life) -> None:
        try:
            self._rates.close()
        except (Unavailable, RefusedByRule) as exc:
            log.error("the permits could not be given back", extra={"fields": {"error": str(exc)}})
        self._enlistment.sign_off(journal)

    # -- duties --------------------------------------------------------------------------------

    async def _renew_rate(self) -> None:
        await self._rates.ask_quota()
        await self._leave_if_paused()
        share = await to_daemon_thread(self._rates.renew)
        if share is not None:
            assert self._sender is not None
            self._rates.pacer.resize(share, time.monotonic())
            self._sender.feed.permits_until = self._rates.permits_until

    async def _leave_if_paused(self) -> None:
        """An account that says so itself is asked for no letter, so no refusal would ever tell of it."""
        quiet_time, pause = self._options.quiet_time, self._rates.newly_paused()
        if quiet_time is not None and pause is not None:
            order = HoldOrder(Rest.SENDING_PAUSED, pause, away_seconds(1, quiet_time), elsewhere=True)
            await to_daemon_thread(self._store.sender_holds.hold, self._options.sender_key, order)

    async def _show_life(self) -> None:
        assert self._sender is not None
        pulse = feel_pulse(self._rates, self._sender.feed.rest(), self._clock)
        await to_daemon_thread(self._store.workers.see, self.id, pulse)

    # -- questions -----------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """The last claim found nothing, and nothing is on its way."""
        return self._sender is not None and self._sender.books.idle.is_set()

    @property
    def rests(self) -> bool:
        """The provider said "not now", or cannot be reached; the next letter tells more."""
        return self._sender is not None and self._sender.feed.rest() is not None

    @property
    def settled(self) -> int:
        return self._sender.books.settled if self._sender is not None else 0

    @property
    def hold(self) -> SenderHold | None:
        """Why nothing is claimed, where the sender is held."""
        return self._sender.hold if self._sender is not None else None


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
