"""Keep the books of a sender: settle outcomes and claim the next group, one commit after the other.

    ledger          │ settle k, claim k+2 (one commit) │ settle k+1, claim k+3 │ …
    connections     │ group k+1 on the wire …          │ group k+2 …           │ …

At most two groups are claimed at a time. The settle of a lost commit is retried for ever, the send never.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import NoReturn, Protocol

from sendonce.domain.engine.claim_counts import HOW_TO_GO_ON
from sendonce.domain.engine.jobs import ClaimRequest, Settlement, Turn
from sendonce.domain.engine.pacing import ClaimSize
from sendonce.errors import LedgerRolledBack, Unavailable, WorkerBuried
from sendonce.flows.engine.async_ledger import AsyncLedger, WentBack
from sendonce.flows.engine.batch_log import BatchLog
from sendonce.flows.engine.feed import STALE_AFTER, ParcelFeed
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_time import boot_time
from sendonce.flows.engine.own_claims import OwnClaims
from sendonce.flows.engine.settlements import RELEASED, Settlements
from sendonce.ports.engine import Meter

log = logging.getLogger(__name__)

IDLE_POLL = 0.5
FLUSH_AFTER = 0.2
LOOK_EVERY = 10.0


class ClaimGate(Protocol):
    """Whether claims may be made now, by the provider's quota and by the clocks."""

    def may_claim(self) -> bool: ...

    def claim_not_after(self) -> datetime | None:
        """A claim that finds the store's clock later than this takes nothing."""

    def note(self, stores_time: datetime) -> None:
        """What the store's clock said in a turn."""


class OpenGate:
    """Nothing but the ledger limits the claims."""

    def may_claim(self) -> bool:
        return True

    def claim_not_after(self) -> None:
        return None

    def note(self, stores_time: datetime) -> None:
        """No clock is compared."""


class Pauses:
    """Longer ones between the tries of what fails again and again."""

    def __init__(self) -> None:
        self._seconds = 0.1

    async def rest(self) -> None:
        await asyncio.sleep(self._seconds)
        self._seconds = min(2 * self._seconds, 5.0)


class BookKeeper:
    """``keep`` runs until the feed is closed and everything is settled."""

    def __init__(
        self,
        *,
        ledger: AsyncLedger,
        feed: ParcelFeed,
        settlements: Settlements,
        claims: OwnClaims,
        holding: Holding,
        gate: ClaimGate,
        size: ClaimSize,
        meter: Meter,
    ) -> None:
        self._ledger = ledger
        self._feed = feed
        self._settlements = settlements
        self._claims = claims
        self._holding = holding
        self._gate = gate
        self._size = size
        self._meter = meter
        self._batches = BatchLog()
        self._strays_looked_for = self._last_turn = time.monotonic()
        self._turn_seconds = 0.0
        self._group = 1
        self.give_up_at = float("inf")
        """When a ledger that does not answer is asked no more; the journal has what is not settled then."""
        self.idle = asyncio.Event()
        self.settled = 0

    async def keep(self) -> None:
        while not (self._feed.closed and not self._feed.in_hand and not self._settlements):
            if not self._feed.closed and time.monotonic() - self._strays_looked_for > LOOK_EVERY:
                await self._look_for_strays()
            self._settlements.group = self._group = self._size.now()
            claim = self._next_claim()
            claimed = await self._turn(claim) if self._settlements or claim else 0
            if not claimed or self._room() < self._group:
                await self._wait_for_outcomes()
            else:
                # A turn that waits for nothing must not starve the loop; and where none of its letters could
                # be built, the next follows at once, and other writers should get in between.
                await asyncio.sleep(0 if self._feed.on_the_way else self._turn_seconds)
            self._settlements.due.clear()

    async def settle_what_is_left(self) -> None:
        """The books ended early, for nothing may be claimed any more. What the provider said is evidence all
        the same; each outcome is settled alone, so that one whose claim is gone does not stop the others."""
        for settlement in self._settlements.take():
            try:
                await self._ledger.settle(settlement)
            except LedgerRolledBack as exc:
                log.warning("an outcome has no claim any more", extra={"fields": {"error": str(exc)}})
            except Unavailable as exc:
                log.warning("outcomes are in the journal only", extra={"fields": {"error": str(exc)}})
                return

    def close(self) -> None:
        self._batches.tell()

    # -- claims --------------------------------------------------------------------------------

    def _next_claim(self) -> ClaimRequest | None:
        """What makes it two groups again, unless that is less than one or nothing could leave
        within half a second. Only to replace what was settled would let the number in hand fall, and never
        rise."""
        if self._feed.closed or not self._gate.may_claim() or self._feed.wait() > STALE_AFTER / 2:
            return None
        room = self._room()
        if room < self._group and self._feed.in_hand:
            return None
        return self._claim_of(max(room, 1))

    def _room(self) -> int:
        """How many more jobs make two groups of those claimed; what is settled now counts no more."""
        return 2 * self._group - self._feed.in_hand

    def _claim_of(self, limit: int) -> ClaimRequest:
        return self._claims.request(limit, self._holding.key, self._gate.claim_not_after())

    async def _look_for_strays(self) -> None:
        """Give back jobs that the ledger counts as ours and that are not in our hands: they never left.

        Between two turns nothing is on its way into our hands. One that we settled before was lost by the
        database. The turn that gives back counts as a claim, so it is refused where the ledger went back.
        """
        self._strays_looked_for = time.monotonic()
        try:
            sending = await self._ledger.sending_of(self._claims.worker_id)
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

    # -- turns ---------------------------------------------------------------------------------

    async def _turn(self, claim: ClaimRequest | None) -> int:
        """One commit; how many jobs it claimed."""
        settlements = self._settlements.take()
        began, began_boot = time.monotonic(), boot_time()
        try:
            turn = await self._turn_until_answered(settlements, claim)
        except (LedgerRolledBack, WorkerBuried):
            self._settlements.put_back(settlements)
            raise
        self._claims.note(settlements, claim, turn)
        self._measure(turn, settlements, began)
        if turn.now is not None:
            self._gate.note(turn.now)
        if claim is not None:
            self._holding.note(turn)
        self._feed.put(turn.claimed, began_boot)
        if claim is not None:
            self._mark_idle(not turn.claimed)
        return len(turn.claimed)

    def _measure(self, turn: Turn, settlements: list[Settlement], began: float) -> None:
        now = time.monotonic()
        self._turn_seconds = min(now - began, 1.0)
        self._size.observe(len(settlements), now - self._last_turn)
        self._last_turn = now
        self._meter.observe_turn(len(turn.claimed), len(settlements), now - began)
        self._batches.note(turn, settlements, now)
        self.settled += len(settlements)

    def _mark_idle(self, nothing_due: bool) -> None:
        if nothing_due and not self._feed.in_hand and not self._settlements:
            self._batches.tell()
            self.idle.set()
        else:
            self.idle.clear()

    async def _wait_for_outcomes(self) -> None:
        waiting = self._feed.in_hand or self._settlements or self._feed.wait() > 0
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_AFTER if waiting else IDLE_POLL):  # wait_for makes a task
                await self._settlements.due.wait()

    async def _turn_until_answered(self, settlements: list[Settlement], claim: ClaimRequest | None) -> Turn:
        """Retry the settle for ever, never the send. A claim that may have been committed is looked for
        by its token; it will be found too old for the wire, and given back."""
        pauses = Pauses()
        while True:
            try:
                if self._holding.unwritten:
                    await self._ledger.in_thread(self._holding.write_down)
                return await self._ledger.turn(settlements, claim)
            except WentBack as exc:
                await self._halt(str(exc))
            except Unavailable as exc:
                log.warning("the ledger does not answer", extra={"fields": {"error": str(exc)}})
                # What is not settled now is in the journal: the next worker settles it from there.
                if time.monotonic() > self.give_up_at:
                    raise
                claim = replace(claim, retry=True, not_after=self._gate.claim_not_after()) if claim else None
                await pauses.rest()

    async def _halt(self, reason: str) -> NoReturn:
        """Stop the claims of everybody, and claim nothing before that is written down: asked again, a
        database that went back may have caught up and look right."""
        self._feed.give_back_ready()
        pauses = Pauses()
        while True:
            try:
                await self._ledger.halt(reason)
                break
            except Unavailable as exc:
                log.warning("the ledger cannot be halted yet", extra={"fields": {"error": str(exc)}})
                if time.monotonic() > self.give_up_at:
                    break
                await pauses.rest()
        raise LedgerRolledBack(reason)
