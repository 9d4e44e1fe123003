"""Calls that may hang, in threads that the end of the process does not wait for.

``asyncio.to_thread`` and its executor are waited for when the loop is closed, however long that takes: a
database or a service that stalls would keep a worker from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from sendonce.flows.engine.shortages import shortages

FINISH_WITHIN = 2.0
"""How long a cancelled call is still waited for: most are in the middle of a short transaction."""

T = TypeVar("T")


class DaemonThread:
    """Does calls one after the other. Whoever stops waiting leaves the thread to itself."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._started = False

    async def run(self, call: Callable[..., T], *args: Any, finish_within: float = FINISH_WITHIN) -> T:
        """What the call returns or raises. Raises Unavailable where no thread can be started."""
        if not self._started:
            with shortages():
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            self._started = True
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._calls.put(partial(_do, partial(call, *args), loop, done))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if finish_within:
                await asyncio.wait({done}, timeout=finish_within)
            done.cancel()
            raise

    def close(self) -> None:
        """It ends after the call that it is at."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _do(call: Callable[[], T], loop: asyncio.AbstractEventLoop, done: asyncio.Future[T]) -> None:
    try:
        finish = partial(_finish, done, call(), None)
    except Exception as exc:  # noqa: BLE001 (raised where the call is waited for)
        finish = partial(_finish, done, None, exc)
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(finish)


def _finish(done: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


async def to_daemon_thread(call: Callable[..., T], *args: Any, finish_within: float = FINISH_WITHIN) -> T:
    """One call in a thread of its own."""
    thread = DaemonThread(getattr(call, "__name__", "call"))
    try:
        return await thread.run(call, *args, finish_within=finish_within)
    finally:
        thread.close()
