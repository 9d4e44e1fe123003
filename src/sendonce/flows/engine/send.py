"""The engine: claim, build, send, settle, with the ledger always a step ahead of the wire.

    ledger          │ settle k, claim k+2 (one commit) │ settle k+1, claim k+3 │ …
    connections     │ group k+1 on the wire …          │ group k+2 …           │ …

The sender is the ``Feed`` that a transport's connections draw from. At most two groups are claimed
at a time; a claim that waited more than a second for the wire is given back and made anew, so that
an unsubscription answered a second before a letter's first byte is honoured.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import NamedTuple, NoReturn

from sendonce.domain.engine.claim_counts import HOW_TO_GO_ON
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, Settlement, Turn
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.pacing import Pacer, SendRate, Unpaced, group_size
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.retries import RetryPolicy
from sendonce.domain.engine.senders import SenderHold
from sendonce.errors import BadInput, LedgerRolledBack, Unavailable, WorkerBuried
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_time import TimeKeeper, boot_time
from sendonce.flows.engine.own_claims import OwnClaims
from sendonce.ports.engine import BegunTurn, Journal, Ledger, Meter, Transport

log = logging.getLogger(__name__)

STALE_AFTER = 1.0
"""The one-second promise: an older claim does not go out."""
DRAIN_SECONDS = 8.0
IDLE_POLL = 0.5
FLUSH_AFTER = 0.2
LOG_EVERY = 1.0
LOOK_EVERY = 10.0
JOURNAL_REST = 5.0
LEASE_LOST_REST = 2.0
# A commit that takes no longer is not worth a thread: the thread's way back to a busy loop takes longer, and
# connections run dry meanwhile. Where commits are slower they go to the thread, and now and then one shows in
# the loop whether they still are; the thread cannot tell, for it waits for the interpreter too.
QUICK_COMMIT = 0.002
SLOW_COMMITS_FOR = 0.25
RELEASED = Deferred("released", "claimed, but it never left", retry_after=0.0, throttle=True)
UNJOURNALED = Deferred("no_journal", "the wire journal cannot be written", JOURNAL_REST, throttle=True)


class _WentBack(Exception):
    """The database gave out what a database that never went back cannot: the ledger is to be halted."""


class Claimed(NamedTuple):
    """A claimed job and the boot time at which its claim began."""

    job: ClaimedJob
    taken: float


class _Batches:
    """The log's lines on what was settled and claimed: one a second, which at full speed is 200 batches."""

    def __init__(self) -> None:
        self._settled: Counter[str] = Counter()
        self._claimed = self._skipped = 0
        self._told = float("-inf")

    def note(self, turn: Turn, settlements: list[Settlement], now: float) -> None:
        self._settled.update([type(settlement.outcome).__name__.lower() for settlement in settlements])
        self._claimed += len(turn.claimed)
        self._skipped += turn.skipped
        if settlements and now - self._told >= LOG_EVERY:
            self._told = now
            self.tell()

    def tell(self) -> None:
        if self._settled:
            fields = {"settled": dict(self._settled), "claimed": self._claimed, "skipped": self._skipped}
            log.info("batch", extra={"fields": fields})
        self._settled.clear()
        self._claimed = self._skipped = 0


class Sender:
    """Sends what is due until it is stopped. ``load`` prepares the letters of newly claimed jobs
    (called in the ledger's thread), ``build`` makes a parcel of one."""

    def __init__(
        self,
        *,
        worker_id: str,
        adoption: int = 0,
        ledger: Ledger,
        transport: Transport,
        journal: Journal,
        pacer: Pacer | Unpaced,
        build: Callable[[ClaimedJob, float], Parcel],
        load: Callable[[tuple[ClaimedJob, ...]], None],
        retry: RetryPolicy,
        meter: Meter,
        connections: int,
        batch_size: int,
        may_claim: Callable[[], bool] = lambda: True,
        holding: Holding | None = None,
        clock: TimeKeeper | None = None,
    ) -> None:
        self._claims = OwnClaims(worker_id, adoption)
        self._strays_looked_for = time.monotonic()
        self._ledger = ledger
        self._transport = transport
        self._journal = journal
        self._pacer = pacer
        self._build = build
        self._load = load
        self._retry = retry
        self._meter = meter
        self._connections = connections
        self._batch_size = batch_size
        self._may_claim = may_claim
        self._holding = holding or Holding(None, "")
        self._clock = clock
        self._dice = Random()  # noqa: S311 (jitter)
        self._ready: deque[Claimed] = deque()
        self._on_wire: set[Parcel] = set()
        self._taken = 0
        self._outcomes: list[Settlement] = []
        self._waiters: deque[asyncio.Future[Parcel | None]] = deque()
        self._openers: deque[asyncio.Future[bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._books_due = asyncio.Event()
        self._rate = SendRate(connections)
        self._group = self._measure_group()
        self._last_turn = time.monotonic()
        self._closing = False
        self._stopped = asyncio.Event()
        self._drain_ends = float("inf")
        self._throttles = 0
        self._throttled = ("", 0.0)
        self._highest_claim = 0
        self._turn_seconds = 0.0
        self._commit_seconds = 0.0
        self._commits_slow_until = 0.0
        self._batches = _Batches()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self.idle = asyncio.Event()
        self.settled = 0
        self.permits_until = float("inf")
        """The boot time after which another worker may hold our permits, unless their lease is renewed."""

    # -- the life of a sender ------------------------------------------------------------------

    async def run(self) -> None:
        """Send until ``stop`` is called; everything that is known is settled when this returns."""
        lanes = asyncio.create_task(self._transport.carry(self, self._connections))
        books = asyncio.create_task(self._keep_books())
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            # A provider that hangs keeps the lanes, and with them the books, from ending by themselves.
            await asyncio.wait({lanes, books, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            await self._drain(lanes)
            await asyncio.wait({books})
            await self._settle_what_is_left()
            books.result()
            if not lanes.cancelled():
                lanes.result()
        finally:
            self.stop()
            for task in (lanes, books, stopped):
                task.cancel()
            await asyncio.gather(lanes, books, stopped, return_exceptions=True)
            self._thread.shutdown(wait=True)
            self._batches.tell()

    def stop(self) -> None:
        """Claim no more, give back what is not on the wire, let the rest finish."""
        if self._closing:
            return
        self._closing = True
        self._stopped.set()
        self._drain_ends = time.monotonic() + DRAIN_SECONDS
        self._give_back_ready()
        self._pump()
        self._books_due.set()

    @property
    def hold(self) -> SenderHold | None:
        """Why nothing is claimed, where the sender is held."""
        return self._holding.hold

    def rest(self) -> tuple[str, float] | None:
        """What the provider said when it asked us to wait, and for how many seconds more."""
        reason, until = self._throttled
        left = until - time.monotonic()
        return (reason, left) if left > 0 else None

    async def _drain(self, lanes: asyncio.Task[None]) -> None:
        """Wait for the replies, but not for a provider that hangs: its letters alone are in doubt."""
        await asyncio.wait({lanes}, timeout=max(self._drain_ends - time.monotonic(), 0.0))
        if not lanes.done():
            lanes.cancel()
            await asyncio.wait({lanes})
        self._taken = 0
        self._books_due.set()

    # -- Feed: what the transport's connections call -------------------------------------------

    async def take(self) -> Parcel | None:
        parcel = self.take_nowait()
        if parcel is not None or self._closing:
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

    async def wanted(self) -> bool:
        if self._closing:
            return False
        opener: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._openers.append(opener)
        self._pump()
        return await opener

    def take_nowait(self) -> Parcel | None:
        while self._ready and not self._closing:
            now = time.monotonic()
            if self._wait(now) > 0:
                return None
            claimed = self._ready.popleft()
            parcel = self._parcel(claimed)
            if parcel is not None:
                self._pacer.take(now)
                self._taken += 1
                return parcel
        return None

    def _wait(self, now: float) -> float:
        """Seconds until a letter may leave. Permits whose lease ran out are not ours to use."""
        return LEASE_LOST_REST if boot_time() > self.permits_until else self._pacer.wait(now)

    def _parcel(self, claimed: Claimed) -> Parcel | None:
        """The job made ready; None if its claim is too old or its fields are not fit for a letter."""
        if boot_time() - claimed.taken > STALE_AFTER:
            self._give_back(claimed.job)
            return None
        try:
            return self._build(claimed.job, claimed.taken)
        except BadInput as exc:
            self._record(claimed.job.id, claimed.job.attempt, claimed.job.tries, Refused("content", str(exc)))
            return None

    def wire(self, parcel: Parcel) -> bool:
        failpoint("wire-before")
        now = boot_time()
        if self._closing or now > self.permits_until or not self._fresh(parcel, now):
            return self._take_back(parcel, RELEASED)
        if not self._journal.wire(parcel.job_id, parcel.attempt):
            self._pacer.hold(time.monotonic() + JOURNAL_REST)
            return self._take_back(parcel, UNJOURNALED)
        self._on_wire.add(parcel)
        failpoint("wire-after")
        return True

    def _fresh(self, parcel: Parcel, now: float) -> bool:
        """Whether the claim still holds. One that waited over a second (for a slow server's answer to the
        envelope, say) is asked of the ledger again; otherwise such a server would never get a letter."""
        if now - parcel.taken <= STALE_AFTER:
            return True
        try:
            return self._ledger.reaffirm(parcel.job_id, parcel.attempt)
        except Unavailable:
            return False

    def _take_back(self, parcel: Parcel, why: Deferred) -> bool:
        """A parcel that was handed out and will not leave now."""
        self._pacer.give_back(time.monotonic())
        self._taken -= 1
        self._record(parcel.job_id, parcel.attempt, parcel.tries, why)
        return False

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
        self._meter.count_outcome(self._transport.name, outcome)
        self._record(parcel.job_id, parcel.attempt, parcel.tries, outcome)

    def _mind_throttling(self, outcome: Outcome, now: float) -> None:
        """A provider that says "not now" to the sender rests the whole transport, longer each time. One that
        refuses the sender has it held."""
        if self._holding.unwritten:
            self._give_back_ready()
        elif not isinstance(outcome, Deferred) or not outcome.throttle:
            self._throttles = 0
        elif outcome.retry_after != 0 and not outcome.local:
            if now >= self._throttled[1]:  # what several connections hear at once is one "not now"
                self._throttles = min(self._throttles + 1, 6)
            rest = outcome.retry_after if outcome.retry_after is not None else 1.0
            until = now + max(rest, min(0.25 * 2.0**self._throttles, 10.0))
            self._pacer.hold(until)
            self._throttled = (outcome.reason, until)
            self._give_back_if_held(now)
            log.warning("held back", extra={"fields": {"code": outcome.code, "reason": outcome.reason}})

    def _give_back_if_held(self, now: float) -> None:
        """Jobs that would only grow stale here may be sent by somebody else, or be cancelled."""
        if self._wait(now) > STALE_AFTER:
            self._give_back_ready()

    def _give_back_ready(self) -> None:
        while self._ready:
            self._give_back(self._ready.popleft().job)

    # -- handing out ---------------------------------------------------------------------------

    def _pump(self) -> None:
        """Give parcels to waiting connections as far as pacing allows, and come back when it allows more."""
        while self._waiters and (self._closing or self._ready):
            parcel = self.take_nowait()
            if parcel is None and not self._closing:
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
        spare = (
            len(self._openers) if self._closing else min(len(self._ready), 1 if rate else self._batch_size)
        )
        while self._openers and spare > 0 and delay <= 0:
            opener = self._openers.popleft()
            if not opener.done():
                opener.set_result(not self._closing)
                spare -= 1
        return delay if delay > 0 or not rate else 1.0 / rate

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    # -- the books -----------------------------------------------------------------------------

    def _give_back(self, job: ClaimedJob) -> None:
        self._record(job.id, job.attempt, job.tries, RELEASED)

    def _record(self, job_id: str, attempt: int, tries: int, outcome: Outcome) -> None:
        """Note an outcome for the next commit."""
        settlement = Settlement(job_id, attempt, outcome)
        if isinstance(outcome, Deferred):
            wait = self._retry.after(tries, outcome, self._dice)
            settlement = settlement._replace(retry_after=wait or 0.0, exhausted=wait is None)
        elif isinstance(outcome, InDoubt):
            settlement = settlement._replace(death_proof="the worker's own word")
        self._outcomes.append(settlement)
        if len(self._outcomes) >= self._group or not self._busy():
            self._books_due.set()

    def _busy(self) -> bool:
        return bool(self._ready) or self._taken > 0

    def _measure_group(self) -> int:
        permitted = float(self._pacer.rate or 1e9)
        return group_size(min(permitted, self._rate.value), self._batch_size)

    async def _keep_books(self) -> None:
        """Settle and claim, one commit a group, until the sender is closed and all is settled."""
        while not (self._closing and not self._busy() and not self._outcomes):
            if not self._closing and time.monotonic() - self._strays_looked_for > LOOK_EVERY:
                await self._look_for_strays()
            self._group = self._measure_group()
            claim = self._next_claim()
            claimed = await self._turn(claim) if self._outcomes or claim else 0
            if not claimed or self._room() < self._group:
                await self._wait_for_books()
            else:
                # A turn that waits for nothing must not starve the loop; and where none of its letters could
                # be built, the next follows at once, and other writers should get in between.
                await asyncio.sleep(0 if self._taken else self._turn_seconds)
            self._books_due.clear()

    async def _settle_what_is_left(self) -> None:
        """The books ended early, for nothing may be claimed any more. What the provider said is evidence all
        the same; each outcome is settled alone, so that one whose claim is gone does not stop the others."""
        outcomes, self._outcomes = self._outcomes, []
        for settlement in outcomes:
            try:
                await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._ledger.turn, [settlement], None
                )
            except LedgerRolledBack as exc:
                log.warning("an outcome has no claim any more", extra={"fields": {"error": str(exc)}})
            except Unavailable as exc:
                log.warning("outcomes are in the journal only", extra={"fields": {"error": str(exc)}})
                return

    async def _look_for_strays(self) -> None:
        """Give back jobs that the ledger counts as ours and that are not in our hands: they never left.

        Between two turns nothing is on its way into our hands. One that we settled before was lost by the
        database. The turn that gives back counts as a claim, so it is refused where the ledger went back.
        """
        self._strays_looked_for = time.monotonic()
        look = asyncio.get_running_loop().run_in_executor
        try:
            sending = await look(self._thread, self._ledger.sending_of, self._claims.worker_id)
        except Unavailable:
            return
        strays = self._claims.strays(sending)
        if lost := self._claims.settled_lately(strays):
            await self._halt(
                f"Attempt {lost[0][1]} of job {lost[0][0]} was settled, but this database does not know "
                f"of it: it was restored from an older copy. {HOW_TO_GO_ON}"
            )
        if strays:
            releases = [Settlement(job_id, attempt, RELEASED) for job_id, attempt in strays]
            guard = self._claim_of(0)
            self._claims.note(releases, guard, await self._turn_until_answered(releases, guard))
            log.warning("gave back jobs that were in nobody's hands", extra={"fields": {"jobs": len(strays)}})

    async def _wait_for_books(self) -> None:
        waiting = self._busy() or self._outcomes or self._wait(time.monotonic()) > 0
        with suppress(TimeoutError):
            await asyncio.wait_for(self._books_due.wait(), FLUSH_AFTER if waiting else IDLE_POLL)

    def _next_claim(self) -> ClaimRequest | None:
        """What makes it two groups again, unless that is less than one or nothing could leave within half
        a second. Only to replace what was settled would let the number in hand fall, and never rise."""
        if self._closing or not self._may_claim() or self._wait(time.monotonic()) > STALE_AFTER / 2:
            return None
        room = self._room()
        if room < self._group and self._busy():
            return None
        return self._claim_of(max(room, 1))

    def _claim_of(self, limit: int) -> ClaimRequest:
        return self._claims.request(limit, self._holding.key, self._not_after())

    def _not_after(self) -> datetime | None:
        return self._clock.claim_not_after() if self._clock is not None else None

    def _room(self) -> int:
        """How many more jobs make two groups of those claimed; what is settled now counts no more."""
        return 2 * self._group - len(self._ready) - self._taken

    async def _turn(self, claim: ClaimRequest | None) -> int:
        """One commit; how many jobs it claimed."""
        settlements, self._outcomes = self._outcomes, []
        began, began_boot = time.monotonic(), boot_time()
        try:
            turn = await self._turn_until_answered(settlements, claim)
        except (LedgerRolledBack, WorkerBuried):
            self._outcomes = settlements + self._outcomes
            raise
        self._claims.note(settlements, claim, turn)
        now = time.monotonic()
        self._turn_seconds = min(now - began, 1.0)
        self._rate.observe(len(settlements), now - self._last_turn)
        self._last_turn = now
        self._meter.observe_turn(len(turn.claimed), len(settlements), now - began)
        self._batches.note(turn, settlements, now)
        self.settled += len(settlements)
        if claim is not None:
            self._holding.note(turn)
        if self._clock is not None and turn.now is not None:
            self._clock.note(turn.now)
        for job in turn.claimed:
            if self._closing or self._holding.unwritten:
                self._give_back(job)
            else:
                self._ready.append(Claimed(job, began_boot))
        if claim is not None:
            self._mark_idle(not turn.claimed)
        self._pump()
        return len(turn.claimed)

    def _mark_idle(self, nothing_due: bool) -> None:
        if nothing_due and not self._busy() and not self._outcomes:
            self._batches.tell()
            self.idle.set()
        else:
            self.idle.clear()

    async def _turn_until_answered(self, settlements: list[Settlement], claim: ClaimRequest | None) -> Turn:
        """Retry the settle for ever, never the send. A claim that may have been committed is looked for
        by its token; it will be found too old for the wire, and given back."""
        pause = 0.1
        while True:
            try:
                return await self._commit(settlements, claim)
            except _WentBack as exc:
                await self._halt(str(exc))
            except Unavailable as exc:
                log.warning("the ledger does not answer", extra={"fields": {"error": str(exc)}})
                # What is not settled now is in the journal: the next worker settles it from there.
                if time.monotonic() > self._drain_ends:
                    raise
                claim = replace(claim, retry=True, not_after=self._not_after()) if claim else None
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)

    async def _commit(self, settlements: list[Settlement], claim: ClaimRequest | None) -> Turn:
        """Where it has to be waited for, in a thread: for a server, for another writer, for a slow disk, for
        outcomes that are settled one by one."""
        failpoint("settle-before")
        if self._holding.unwritten:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._holding.write_down)
        usual = all(isinstance(settlement.outcome, Accepted) for settlement in settlements)
        begun = self._ledger.begin_turn(settlements, claim) if usual else None
        if begun is not None and time.monotonic() >= self._commits_slow_until:
            return self._commit_here(begun)
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._finish_turn, begun, settlements, claim
        )

    def _commit_here(self, begun: BegunTurn) -> Turn:
        began = time.monotonic()
        turn = self._after_commit(begun.commit())
        ended = time.monotonic()
        # One long commit (SQLite then moves its log into the file) does not make them slow, two or three do.
        self._commit_seconds += 0.2 * (min(ended - began, 3 * QUICK_COMMIT) - self._commit_seconds)
        if self._commit_seconds > QUICK_COMMIT:
            # The next that is tried here decides alone, and the loop stands still for a twentieth at most.
            self._commits_slow_until = ended + max(SLOW_COMMITS_FOR, 20 * (ended - began))
            self._commit_seconds = 0.8 * QUICK_COMMIT
        return turn

    def _finish_turn(
        self, begun: BegunTurn | None, settlements: list[Settlement], claim: ClaimRequest | None
    ) -> Turn:
        return self._after_commit(
            begun.commit() if begun is not None else self._ledger.turn(settlements, claim)
        )

    def _after_commit(self, turn: Turn) -> Turn:
        failpoint("settle-after")
        if turn.claimed:
            self._note_claim(turn)
            failpoint("claimed")
            self._load(turn.claimed)
        elif turn.claims:  # counted, but others were faster
            self._journal.claimed(self._highest_claim, turn.claims)
        return turn

    def _note_claim(self, turn: Turn) -> None:
        """Claim numbers only rise: one that does not comes from a database restored under our feet."""
        if turn.claim_seq <= self._highest_claim:
            raise _WentBack(
                f"The database gave out claim {turn.claim_seq} after claim {self._highest_claim}: it was "
                f"restored from an older copy. {HOW_TO_GO_ON}"
            )
        self._highest_claim = turn.claim_seq
        self._journal.claimed(turn.claim_seq, turn.claims)

    async def _halt(self, reason: str) -> NoReturn:
        """Stop the claims of everybody, and claim nothing before that is written down: asked again, a
        database that went back may have caught up and look right."""
        self._give_back_ready()
        pause = 0.1
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._ledger.halt, reason)
                break
            except Unavailable as exc:
                log.warning("the ledger cannot be halted yet", extra={"fields": {"error": str(exc)}})
                if time.monotonic() > self._drain_ends:
                    break
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)
        raise LedgerRolledBack(reason)
