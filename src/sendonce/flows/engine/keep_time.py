"""Claim nothing by a clock that has jumped: the store's, by which jobs are due, or this machine's own."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from sendonce.domain.engine.clocks import ClockGuard
from sendonce.errors import Unavailable
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.ports.engine import Ledger

log = logging.getLogger(__name__)

FAR_AHEAD = 600.0
"""Machines whose clocks nobody sets may be minutes apart, and letters that are minutes early do no harm."""


def boot_time() -> float:
    """Seconds since boot, also those of a suspended machine, in which CLOCK_MONOTONIC stands still."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class OtherClock(Protocol):
    async def server_time(self) -> datetime:
        """The provider's clock. Raises Unavailable."""


class SeenClocks:
    """What a process has seen of this machine's clock and of the store's."""

    def __init__(self) -> None:
        self.own = ClockGuard(time.time(), boot_time())
        self.stores: ClockGuard | None = None
        self.no_absence_before = float("-inf")


class TimeKeeper:
    """Watches both clocks. ``quiet`` is how long a doubt must be quiet before absence is proven.

    ``seen`` is handed on by those who come one after the other in a process, such as ticks.
    """

    def __init__(
        self,
        ledger: Ledger,
        provider: OtherClock | None,
        quiet: timedelta,
        seen: SeenClocks | None = None,
    ) -> None:
        self._ledger = ledger
        self._provider = provider
        self._quiet = quiet.total_seconds()
        self._seen = seen or SeenClocks()

    def open(self) -> None:
        """Take the store's clock as it is now, unless it is far ahead of this machine's. Raises Unavailable.

        Whoever starts right after a leap, as every tick may, cannot see it. But where the store is on another
        machine, two clocks are there to be compared.
        """
        stores, own, now = self._ledger.now().timestamp(), time.time(), boot_time()
        if self._seen.stores is None:
            self._seen.stores = ClockGuard(own if stores - own > FAR_AHEAD else stores, now)
        self._stores.observe(stores, now)

    @property
    def _own(self) -> ClockGuard:
        return self._seen.own

    @property
    def _stores(self) -> ClockGuard:
        assert self._seen.stores is not None, "open it first"
        return self._seen.stores

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
        return boot_time() >= self._seen.no_absence_before

    async def mind(self) -> None:
        """Ask a second clock about a jump. Until it agrees nothing is claimed."""
        stores = await to_daemon_thread(self._ledger.now)
        self.note(stores)
        self._own.observe(time.time(), boot_time())
        if self._own.trusted and self._stores.trusted:
            return
        self._seen.no_absence_before = boot_time() + self._quiet
        try:
            agreed = await self._ask(stores)
        except Unavailable:
            agreed = False  # a provider may refuse even to talk to us: our signature's date is off
        log.warning(
            "the clock jumped: nothing is claimed until a second clock agrees; correct it, or, if it is "
            "right now, restart the worker",
            extra={"fields": {"second_clock_agrees": agreed, "database_ahead": _ahead(stores)}},
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


def _ahead(stores: datetime) -> float:
    """How many seconds the store's clock is ahead of this machine's."""
    return round(stores.timestamp() - time.time(), 1)
