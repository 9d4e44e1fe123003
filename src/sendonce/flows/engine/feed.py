"""What a transport's connections draw from: claimed jobs come in, parcels go out, outcomes come back.

A job waits here, without a letter of its own, until a connection asks and pacing allows; only then is its
parcel built. A claim that waited more than a second for the wire is given back or asked about again, so that
an unsubscription answered a second before a letter's first byte is honoured.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from sendonce.domain.engine.dispatches import LETTER_GONE
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.engine.outcomes import Deferred, Outcome, Refused
from sendonce.domain.engine.pacing import Pacer, ProviderRest, Unpaced
from sendonce.domain.engine.parcels import Parcel
from sendonce.errors import BadInput, NotFound, Unavailable
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_time import boot_time
from sendonce.flows.engine.settlements import RELEASED, Settlements
from sendonce.ports.engine import Journal

log = logging.getLogger(__name__)

STALE_AFTER = 1.0
"""The one-second promise: an older claim does not go out."""
JOURNAL_REST = 5.0
LEASE_LOST_REST = 2.0
LETTER_REST = 600.0
UNJOURNALED = Deferred("no_journal", "the wire journal cannot be written", JOURNAL_REST, throttle=True)


class Claimed(NamedTuple):
    """A claimed job and the boot time at which its claim began."""

    job: ClaimedJob
    taken: float


class ParcelFeed:
    """The ``Feed`` of one sender.

    ``build`` makes a parcel of a job, or says why it has to wait. ``reaffirm`` asks the ledger whether a
    claimed attempt may still leave.
    """

    def __init__(
        self,
        *,
        settlements: Settlements,
        build: Callable[[ClaimedJob, float], Parcel | Deferred],
        reaffirm: Callable[[str, int], Awaitable[bool]],
        journal: Journal,
        pacer: Pacer | Unpaced,
        holding: Holding,
        count_outcome: Callable[[Outcome], None],
    ) -> None:
        self._settlements = settlements
        self._build = build
        self._ask_ledger = reaffirm
        self._journal = journal
        self._pacer = pacer
        self._holding = holding
        self._count_outcome = count_outcome
        self._ready: deque[Claimed] = deque()
        self._taken = 0
        self._on_wire: set[Parcel] = set()
        self._waiters: deque[asyncio.Future[Parcel | None]] = deque()
        self._openers: deque[asyncio.Future[bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._provider_rest = ProviderRest()
        self.closed = False
        self.permits_until = float("inf")
        """The boot time after which another worker may hold our permits, unless their lease is renewed."""

    # -- the books' side -----------------------------------------------------------------------

    @property
    def in_hand(self) -> int:
        """How many jobs are claimed and have no outcome yet."""
        return len(self._ready) + self._taken

    @property
    def on_the_way(self) -> int:
        """How many of them are with a connection."""
        return self._taken

    def wait(self) -> float:
        """Seconds until a letter may leave."""
        return self._wait(time.monotonic())

    def put(self, jobs: Iterable[ClaimedJob], taken: float) -> None:
        """Jobs whose claim began at the boot time ``taken``. Those that may not leave any more go back."""
        if self.closed or self._holding.unwritten:
            for job in jobs:
                self._give_back(job)
        else:
            self._ready.extend([Claimed(job, taken) for job in jobs])
        self._pump()

    def give_back_ready(self) -> None:
        """Give back every job that is not with a connection."""
        while self._ready:
            self._give_back(self._ready.popleft().job)

    def close(self) -> None:
        """Hand out nothing more. What is on the wire is still settled."""
        self.closed = True
        self.give_back_ready()
        self._pump()
        self._settlements.due.set()

    def abandon(self) -> None:
        """The connections are gone, and with them whatever had no outcome."""
        self._taken = 0
        self._settlements.due.set()

    def rest(self) -> tuple[str, float] | None:
        """What the provider said when it asked us to wait, and for how many seconds more."""
        left = self._provider_rest.until - time.monotonic()
        return (self._provider_rest.reason, left) if left > 0 else None

    # -- the connections' side: taking ---------------------------------------------------------

    async def wanted(self) -> bool:
        if self.closed:
            return False
        opener: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._openers.append(opener)
        self._pump()
        return await opener

    async def take(self) -> Parcel | None:
        parcel = self.take_nowait()
        if parcel is not None or self.closed:
            return parcel
        waiter: asyncio.Future[Parcel | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._pump()
        try:
            return await waiter
        except asyncio.CancelledError:
            self._forget(waiter)
            raise

    def _forget(self, waiter: asyncio.Future[Parcel | None]) -> None:
        """The connection ended while it waited. A parcel that reached it in the same moment goes back."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        if not waiter.cancelled() and (parcel := waiter.result()) is not None:
            self._take_back(parcel, RELEASED)

    def take_nowait(self) -> Parcel | None:
        while self._ready and not self.closed:
            now = time.monotonic()
            if self._wait(now) > 0:
                return None
            parcel = self._parcel(self._ready.popleft())
            if parcel is not None:
                self._pacer.take(now)
                self._taken += 1
                return parcel
        return None

    def _wait(self, now: float) -> float:
        """Seconds until a letter may leave. Permits whose lease ran out are not ours to use."""
        return LEASE_LOST_REST if boot_time() > self.permits_until else self._pacer.wait(now)

    def _parcel(self, claimed: Claimed) -> Parcel | None:
        """The job made ready; None if its claim is too old, or no letter is made of it."""
        job, taken = claimed
        if boot_time() - taken > STALE_AFTER:
            self._give_back(job)
            return None
        made = self._made(job, taken)
        if isinstance(made, Parcel):
            return made
        self._record(job.id, job.attempt, job.tries, made, job.dispatch_id)
        return None

    def _made(self, job: ClaimedJob, taken: float) -> Parcel | Refused | Deferred:
        try:
            return self._build(job, taken)
        except BadInput as exc:
            return Refused("content", str(exc))
        except NotFound as exc:  # it waits until the letter is back; the doctor names it
            return Deferred(LETTER_GONE, str(exc), LETTER_REST, throttle=True)

    # -- the connections' side: the wire -------------------------------------------------------

    def is_stale(self, parcel: Parcel) -> bool:
        return boot_time() - parcel.taken > STALE_AFTER

    async def reaffirm(self, parcel: Parcel) -> None:
        asked = boot_time()
        try:
            # An answer that takes longer is too old itself.
            async with asyncio.timeout(STALE_AFTER):
                if await self._ask_ledger(parcel.job_id, parcel.attempt):
                    parcel.taken = asked
        except (TimeoutError, Unavailable) as exc:
            log.warning("an old claim goes back: the ledger is silent", extra={"fields": {"error": str(exc)}})

    def wire(self, parcel: Parcel) -> bool:
        failpoint("wire-before")
        now = boot_time()
        if self.closed or now > self.permits_until or now - parcel.taken > STALE_AFTER:
            return self._take_back(parcel, RELEASED)
        if not self._journal.wire(parcel.job_id, parcel.attempt):
            self._pacer.hold(time.monotonic() + JOURNAL_REST)
            return self._take_back(parcel, UNJOURNALED)
        self._on_wire.add(parcel)
        failpoint("wire-after")
        return True

    def settle(self, parcel: Parcel, outcome: Outcome) -> None:
        failpoint("reply-before")
        outcome = self._holding.judge(parcel, outcome)
        if parcel in self._on_wire:
            self._on_wire.discard(parcel)
            self._journal.reply(parcel.job_id, parcel.attempt, outcome)
        failpoint("reply-after")
        now = time.monotonic()
        self._pacer.give_back(now)
        self._taken -= 1
        self._mind_throttling(outcome, now)
        self._count_outcome(outcome)
        self._record(parcel.job_id, parcel.attempt, parcel.tries, outcome, parcel.dispatch_id)

    def _mind_throttling(self, outcome: Outcome, now: float) -> None:
        """A provider that says "not now" to the sender rests the whole transport. One that refuses the sender
        has it held."""
        if self._holding.unwritten:
            self.give_back_ready()
        elif not isinstance(outcome, Deferred) or not outcome.throttle:
            self._provider_rest.end()
        elif outcome.retry_after != 0 and not outcome.local:
            self._pacer.hold(self._provider_rest.extend(outcome, now))
            self._give_back_if_held(now)
            log.warning("held back", extra={"fields": {"code": outcome.code, "reason": outcome.reason}})

    # -- giving back ---------------------------------------------------------------------------

    def _take_back(self, parcel: Parcel, why: Deferred) -> bool:
        """A parcel that was handed out and will not leave now."""
        self._pacer.give_back(time.monotonic())
        self._taken -= 1
        self._record(parcel.job_id, parcel.attempt, parcel.tries, why, parcel.dispatch_id)
        return False

    def _give_back_if_held(self, now: float) -> None:
        """Jobs that would only grow stale here may be sent by somebody else, or be cancelled."""
        if self._wait(now) > STALE_AFTER:
            self.give_back_ready()

    def _give_back(self, job: ClaimedJob) -> None:
        self._record(job.id, job.attempt, job.tries, RELEASED, job.dispatch_id)

    def _record(self, job_id: str, attempt: int, tries: int, outcome: Outcome, dispatch_id: str) -> None:
        """A commit is due when a group has its outcomes. At full speed it waits until connections have taken
        all that was claimed: the later, the more it settles and claims at once (decision 74)."""
        self._settlements.add(job_id, attempt, tries, outcome, dispatch_id)
        worth_it = self._settlements.make_a_group and (self._pacer.rate or not self._ready)
        if worth_it or (not self._ready and not self._taken):
            self._settlements.due.set()

    # -- handing out ---------------------------------------------------------------------------

    def _pump(self) -> None:
        """Give parcels to waiting connections as far as pacing allows, and come back when it allows more."""
        while self._waiters and (self.closed or self._ready):
            parcel = self.take_nowait()
            if parcel is None and not self.closed:
                break
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(parcel)
            elif parcel is not None:
                self._take_back(parcel, RELEASED)
        now = time.monotonic()
        self._give_back_if_held(now)
        delay = self._wait(now) if self._ready else 0.0
        if self._openers and not self._waiters:
            delay = self._call_openers(delay)
        if self._ready and (self._waiters or (self._openers and delay > 0)) and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _call_openers(self, delay: float) -> float:
        """No connection waits: have one opened per letter that may leave now; seconds until the next look."""
        rate = self._pacer.rate
        may_leave = min(len(self._ready), 1) if rate else len(self._ready)
        spare = len(self._openers) if self.closed else may_leave
        while self._openers and spare > 0 and delay <= 0:
            opener = self._openers.popleft()
            if not opener.done():
                opener.set_result(not self.closed)
                spare -= 1
        return delay if delay > 0 or not rate else 1.0 / rate

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()
