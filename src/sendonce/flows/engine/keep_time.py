"""Claim nothing by a clock that has jumped: the store's, by which jobs are due, or this machine's own."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from sendonce.domain.engine.clocks import ClockGuard
from sendonce.errors import Unavailable
from sendonce.ports.engine import Ledger

log = logging.getLogger(__name__)


def boot_time() -> float:
    """Seconds since boot, also those of a suspended machine, in which CLOCK_MONOTONIC stands still."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class OtherClock(Protocol):
    async def server_time(self) -> datetime:
        """The provider's clock. Raises Unavailable."""


class TimeKeeper:
    """Watches both clocks. ``quiet`` is how long a doubt must be quiet before absence is proven."""

    def __init__(self, ledger: Ledger, provider: OtherClock | None, quiet: timedelta) -> None:
        self._ledger = ledger
        self._provider = provider
        self._quiet = quiet.total_seconds()
        self._no_absence_before = float("-inf")
        now = boot_time()
        self._own = ClockGuard(time.time(), now)
        self._stores = ClockGuard(time.time(), now)

    def open(self) -> None:
        """Take the store's clock as it is now. Raises Unavailable."""
        self._stores = ClockGuard(self._ledger.now().timestamp(), boot_time())

    # -- asked at every claim ------------------------------------------------------------------

    def may_claim(self) -> bool:
        return self._stores.trusted and self._own.observe(time.time(), boot_time())

    def claim_not_after(self) -> datetime:
        """A claim that finds the store's clock later than this takes nothing."""
        return datetime.fromtimestamp(self._stores.latest(boot_time()), UTC)

    def note(self, stores_time: datetime) -> None:
        """What the store's clock said in a turn."""
        self._stores.observe(stores_time.timestamp(), boot_time())

    # -- asked now and then --------------------------------------------------------------------

    def may_start(self) -> bool:
        """Whether a mailout may be started and planned by the store's clock. Raises Unavailable."""
        self.note(self._ledger.now())
        return self.may_claim()

    @property
    def may_prove_absence(self) -> bool:
        """After a jump the quiet time of a doubt may be the clock's own leap, so it starts again."""
        return boot_time() >= self._no_absence_before

    async def mind(self) -> None:
        """Ask a second clock about a jump. Until it agrees nothing is claimed."""
        stores = await asyncio.to_thread(self._ledger.now)
        self.note(stores)
        self._own.observe(time.time(), boot_time())
        if self._own.trusted and self._stores.trusted:
            return
        self._no_absence_before = boot_time() + self._quiet
        try:
            agreed = await self._ask(stores)
        except Unavailable:
            agreed = False  # a provider may refuse even to talk to us: our signature's date is off
        log.warning(
            "the clock jumped: nothing is claimed until a second clock agrees; if it is right now, restart "
            "the worker",
            extra={"fields": {"second_clock_agrees": agreed}},
        )

    async def _ask(self, stores: datetime) -> bool:
        """The provider's clock decides. Without one each of the two is the other's second clock, unless both
        have jumped: then they may be one and the same."""
        if self._provider is not None:
            right = (await self._provider.server_time()).timestamp()
        elif self._own.trusted:
            right = time.time()
        elif self._stores.trusted:
            right = stores.timestamp()
        else:
            return False
        now = boot_time()
        own = self._own.trusted or self._own.confirm(time.time(), now, right)
        return (self._stores.trusted or self._stores.confirm(stores.timestamp(), now, right)) and own
