"""The engine: claim, build, send, settle, with the ledger always a step ahead of the wire.

A sender is three things that work side by side:

    feed          what the transport's connections draw from, and where they leave the outcomes
    keep_books    settles those outcomes and claims the next jobs, one commit a group
    async_ledger  decides where a commit is made: in the event loop if it is quick, else in a thread
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial

from sendonce.domain.engine.pacing import ClaimSize, Pacer, Unpaced
from sendonce.domain.engine.retries import RetryPolicy
from sendonce.domain.engine.senders import SenderHold
from sendonce.errors import Unavailable
from sendonce.flows.engine.async_ledger import AsyncLedger, Letters
from sendonce.flows.engine.feed import ParcelFeed
from sendonce.flows.engine.hold_sender import Holding
from sendonce.flows.engine.keep_books import BookKeeper, ClaimGate
from sendonce.flows.engine.own_claims import OwnClaims
from sendonce.flows.engine.settlements import Settlements
from sendonce.ports.engine import Journal, Ledger, Meter, Transport

DRAIN_SECONDS = 8.0
LAST_COMMIT_WITHIN = 2.0


@dataclass(frozen=True, slots=True)
class SendOptions:
    connections: int
    batch_size: int
    retry: RetryPolicy


class SendLoop:
    """Sends what is due until it is stopped."""

    def __init__(
        self,
        options: SendOptions,
        *,
        ledger: Ledger,
        claims: OwnClaims,
        journal: Journal,
        letters: Letters,
        transport: Transport,
        pacer: Pacer | Unpaced,
        gate: ClaimGate,
        holding: Holding,
        meter: Meter,
    ) -> None:
        settlements = Settlements(options.retry)
        self._transport = transport
        self._connections = options.connections
        self._holding = holding
        self._ledger = AsyncLedger(ledger, journal, letters)
        self.feed = ParcelFeed(
            settlements=settlements,
            build=letters.build,
            reaffirm=self._ledger.reaffirm,
            journal=journal,
            pacer=pacer,
            holding=holding,
            count_outcome=partial(meter.count_outcome, transport.name),
        )
        self.books = BookKeeper(
            ledger=self._ledger,
            feed=self.feed,
            settlements=settlements,
            claims=claims,
            holding=holding,
            gate=gate,
            size=ClaimSize(pacer, options.connections, options.batch_size),
            meter=meter,
        )
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Send until ``stop`` is called; everything that is known is settled when this returns."""
        lanes = asyncio.create_task(self._transport.carry(self.feed, self._connections))
        books = asyncio.create_task(self.books.keep())
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            # A provider that hangs keeps the lanes, and with them the books, from ending by themselves.
            await asyncio.wait({lanes, books, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            await self._drain(lanes)
            await self._close_books(books)
            if not lanes.cancelled():
                lanes.result()
        finally:
            self.stop()
            for task in (lanes, books, stopped):
                task.cancel()
            await asyncio.gather(lanes, books, stopped, return_exceptions=True)
            self._ledger.close()
            self.books.close()

    async def _close_books(self, books: asyncio.Task[None]) -> None:
        """Wait for the last commits, but not for a ledger that hangs: the journal has the outcomes."""
        try:
            async with asyncio.timeout(self.books.give_up_at + LAST_COMMIT_WITHIN - time.monotonic()):
                await asyncio.wait({books})
                await self.books.settle_what_is_left()
        except TimeoutError as exc:
            raise Unavailable(
                "The ledger did not answer: the next worker settles what this one sent."
            ) from exc
        books.result()

    def stop(self) -> None:
        """Claim no more, give back what is not on the wire, let the rest finish."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self.books.give_up_at = time.monotonic() + DRAIN_SECONDS
        self.feed.close()

    async def _drain(self, lanes: asyncio.Task[None]) -> None:
        """Wait for the replies, but not for a provider that hangs: its letters alone are in doubt."""
        await asyncio.wait({lanes}, timeout=max(self.books.give_up_at - time.monotonic(), 0.0))
        if not lanes.done():
            lanes.cancel()
            await asyncio.wait({lanes})
        self.feed.abandon()

    @property
    def hold(self) -> SenderHold | None:
        """Why nothing is claimed, where the sender is held."""
        return self._holding.hold
