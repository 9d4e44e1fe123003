"""Wait for a call that may hang, without the process having to wait for it when it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from sendonce.flows.engine.repeat import shortages

T = TypeVar("T")


async def in_daemon_thread(call: Callable[[], T], name: str) -> T:
    """What ``call`` returns or raises, from a thread that the end of the process does not wait for.

    Whoever stops waiting leaves the thread to itself; its answer is dropped. Raises Unavailable where no
    thread can be started.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(error)

    def work() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = call()
        except Exception as exc:  # noqa: BLE001 (raised where the call is waited for)
            error = exc
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(finish, result, error)

    with shortages():
        threading.Thread(target=work, name=name, daemon=True).start()
    return await done
