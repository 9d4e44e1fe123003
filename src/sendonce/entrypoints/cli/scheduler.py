"""sendonce scheduler: the duties that need no transport, for deployments that keep them apart from sending.

Workers do all of this too. A scheduler beside them plans while they are busy or away, and buries those
whose container is gone for good, as long as it sees their state directory. It sends nothing, canaries
included, so settling doubt stays with the workers.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from sendonce.entrypoints.cli.context import opened_store, ready_settings
from sendonce.errors import Unavailable

if TYPE_CHECKING:
    from sendonce.adapters.wire_journal import StateDirectory
    from sendonce.ports import Store
    from sendonce.settings import Settings

log = logging.getLogger(__name__)

ROUND_EVERY = 0.5


def scheduler() -> None:
    """Plan what is started, finish what is done, bury dead workers. Sends nothing: that is for workers."""
    from sendonce import wiring

    settings = ready_settings()
    with opened_store(settings) as store:
        asyncio.run(Housekeeper(settings, store, wiring.state_directory(settings, store)).run())


class Housekeeper:
    """Goes round until SIGTERM or SIGINT; a database that does not answer is asked again later."""

    def __init__(self, settings: Settings, store: Store, state: StateDirectory) -> None:
        from sendonce.flows.steward import Steward

        self._store = store
        self._state = state
        self._retry_after = settings.retry_base_seconds
        self._bury_every = settings.bury_interval_seconds
        self._buried_at = float("-inf")
        self._leaving = threading.Event()  # a long planning run looks at it between two chunks
        self._stopping = asyncio.Event()
        self._steward = Steward(store, f"scheduler-{uuid.uuid4()}", lambda: self._leaving.wait(0.005))

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.stop)
        log.info("the scheduler is at work")
        while not self._stopping.is_set():
            try:
                await asyncio.to_thread(self.go_round)
            except Unavailable as exc:
                log.warning("a duty failed", extra={"fields": {"error": str(exc)}})
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), ROUND_EVERY)

    def stop(self) -> None:
        self._leaving.set()
        self._stopping.set()

    def go_round(self) -> None:
        """Raises LedgerRolledBack for a database that nothing may be sent from."""
        from sendonce.flows.bury import bury_the_dead
        from sendonce.flows.check_ledger import check_ledger

        if time.monotonic() - self._buried_at >= self._bury_every:
            check_ledger(self._store, self._state.highest_claim())
            bury_the_dead(self._store, self._state, self._retry_after)
            self._buried_at = time.monotonic()
        self._steward.run()
