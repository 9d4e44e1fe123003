"""The sandbox's mail provider in a thread of its own, for tests that talk to it over real sockets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from sendonce.adapters.imap.account import ImapAccount, ImapSettings
from sendonce.sandbox.mailbox import Mailbox


@contextmanager
def running_mailbox() -> Iterator[Mailbox]:
    mailbox = Mailbox()
    with _served(mailbox.open, mailbox.close):
        yield mailbox


@contextmanager
def saying(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """A server on loopback that says what it likes: its port."""
    servers: list[asyncio.Server] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK hello\r\n")
        try:
            while line := await reader.readline():
                writer.write(answer(line))
        except ConnectionError:
            pass  # it heard enough
        finally:
            writer.close()

    async def open_() -> None:
        servers.append(await asyncio.start_server(talk, "127.0.0.1", 0))

    async def close() -> None:
        servers[0].close()

    with _served(open_, close):
        yield servers[0].sockets[0].getsockname()[1]


@contextmanager
def _served(open_: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]]) -> Iterator[None]:
    ready, leave = threading.Event(), threading.Event()

    async def serve() -> None:
        await open_()
        ready.set()
        await asyncio.to_thread(leave.wait)
        await close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield
    finally:
        leave.set()
        thread.join(10)


def account_of(mailbox: Mailbox, password: str | None = None) -> ImapAccount:
    return ImapAccount(
        ImapSettings(
            host="127.0.0.1",
            port=mailbox.imap_port,
            security="plain",
            username=mailbox.address,
            password=mailbox.password if password is None else password,
        )
    )
