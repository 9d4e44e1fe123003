"""Do a duty again and again. What does not answer now, or runs short now, may do so later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from sendonce.errors import Unavailable

log = logging.getLogger(__name__)


async def repeat(seconds: float, duty: Callable[[], Awaitable[None]]) -> None:
    """Never returns. Whatever is not Unavailable ends it."""
    while True:
        try:
            with shortages():
                await duty()
        except Unavailable as exc:
            log.warning("a duty failed", extra={"fields": {"error": str(exc)}})
        await asyncio.sleep(seconds)


@contextmanager
def shortages() -> Iterator[None]:
    """A machine that is out of descriptors, of threads or of names is Unavailable: it passes."""
    try:
        yield
    except OSError as exc:
        raise Unavailable(f"The machine is short of something: {exc}") from exc
    except RuntimeError as exc:
        if "start new thread" not in str(exc):
            raise
        raise Unavailable(f"The machine is short of threads: {exc}") from exc
