"""What the endpoints share: the settings, the store and the threads in which it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request

from sendonce.domain.engine.tenants import TenantId
from sendonce.entrypoints.http.access import Gate, bearer_tokens
from sendonce.errors import Unavailable
from sendonce.flows.engine.listen import Listener
from sendonce.ports.engine import ReadableMeter
from sendonce.ports.store import Store
from sendonce.settings import Settings
from sendonce.wiring.sender_check import AT_ONCE, make_sender_check

Tick = Callable[[float], Awaitable[dict[str, Any]]]
T = TypeVar("T")

# PostgreSQL's pool has twelve connections for the whole process.
_THREADS = 4
# Threads that wait for Notion are others than those that answer people. What finds them all busy, and so many
# waiting already, is turned away: Notion comes again.
_OUTSIDE_THREADS = 2
_MOST_WAITING = 8
# SQLite has one writer at a time, and writers that meet sleep longer than the write takes: a queue of
# our own brings the slowest hundredth of events from 120 ms to 20 ms.
_SQLITE_WRITERS = 1
# For signatures. Whoever fetches a certificate there may wait for it; nothing else does.
_VERIFIERS = 2


class Service:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        metrics: ReadableMeter,
        nudge: Callable[[], None],
        tick: Tick | None,
        tenant_id: TenantId,
    ) -> None:
        self.settings = settings
        self.store = store
        self.metrics = metrics
        self.nudge = nudge
        self.tick = tick
        self.tenant_id = tenant_id
        self.gate = Gate()
        self.listener = Listener(store.event_route, settings.sns_allowed_topic_arns)
        self.sender_check = make_sender_check(settings, store, AT_ONCE)
        writers = _SQLITE_WRITERS if settings.database_url.startswith("sqlite") else _THREADS
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="http")
        self._writers = ThreadPoolExecutor(writers, thread_name_prefix="http-writer")
        self._verifiers = ThreadPoolExecutor(_VERIFIERS, thread_name_prefix="http-verifier")
        self._outside = ThreadPoolExecutor(_OUTSIDE_THREADS, thread_name_prefix="http-outside")
        self._waiting_outside = 0
        self.at_close: list[Callable[[], None]] = []

    async def in_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Call what talks to the store, away from the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    async def in_writer(self, call: Callable[..., T], *args: Any) -> T:
        """The same for the many short writes; a long look at the store does not hold them up."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, call, *args)

    async def in_verifier(self, call: Callable[..., T], *args: Any) -> T:
        """The same for what strangers send: not in the loop's own threads, which the worker needs."""
        return await asyncio.get_running_loop().run_in_executor(self._verifiers, call, *args)

    async def in_outside_thread(self, call: Callable[..., T], *args: Any) -> T:
        """The same for what asks an outside service. Raises Unavailable when too many wait there."""
        if self._waiting_outside >= _MOST_WAITING:
            raise Unavailable("Too many requests wait for an outside service already.")
        self._waiting_outside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._outside, call, *args)
        finally:
            self._waiting_outside -= 1

    def require_secret(self, request: Request, *others: str) -> None:
        """Pass with EXECUTOR_SHARED_SECRET, or one of the others, in a header; else 401."""
        secrets = (self.settings.executor_shared_secret, *others)
        self.gate.let_in(request, bearer_tokens(request), secrets)

    def close(self) -> None:
        for pool in (self._threads, self._writers, self._verifiers, self._outside):
            pool.shutdown(wait=True, cancel_futures=True)
        for close in self.at_close:
            close()
