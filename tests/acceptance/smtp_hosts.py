"""SMTP servers beside a worker that is a process of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.adapters.smtp_server import PIPELINING, Answer, SmtpServer


@contextmanager
def smtp_host(answers: Mapping[str, Sequence[Answer]] | None = None) -> Iterator[SmtpServer]:
    """A server that wants a login, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="smtp-host")
    thread.start()

    async def make() -> SmtpServer:
        return SmtpServer(answers, extensions=(*PIPELINING, "AUTH PLAIN LOGIN"))

    server = asyncio.run_coroutine_threadsafe(make(), loop).result(10)
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield server
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
