"""Worker processes: signals, logs and progress around the worker flow."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import uvloop

from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus
from sendonce.domain.mailouts.progress import Cause, Standstill
from sendonce.entrypoints.cli.context import time_zone
from sendonce.entrypoints.cli.mailouts.progress import Show, measuring, progress_lines, waiting_line
from sendonce.errors import Unavailable
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.keep_time import SeenClocks
from sendonce.flows.engine.tick import tick as work_for
from sendonce.flows.engine.work import SHORT_WAIT, Worker
from sendonce.flows.mailouts.explain_progress import explain_progress
from sendonce.ports.store import Store
from sendonce.settings import Settings
from sendonce.wiring.metrics import make_metrics, no_metrics, served_metrics
from sendonce.wiring.notion import make_notion_chores
from sendonce.wiring.reports import write_due_reports
from sendonce.wiring.senders import keys_of
from sendonce.wiring.worker import make_worker

log = logging.getLogger(__name__)

BOOKS_EVERY = 1.0
LAST_WORDS_WITHIN = 10.0
T = TypeVar("T")


def run_worker(settings: Settings, store: Store, *, name: str, until_idle: bool) -> None:
    """A worker of its own process, until it is idle or gets SIGTERM."""
    metrics = make_metrics(store)
    worker = make_worker(settings, store, metrics, name)
    tune_the_interpreter()
    with served_metrics(settings, metrics):
        uvloop.run(_until_signal(worker, worker.run(Worker.idle if until_idle else None)))
    if until_idle and not worker.was_stopped:
        _say_the_last_words(settings, store)


def run_tick(settings: Settings, store: Store, seconds: float) -> int:
    """Work until nothing is due or the time is over; how many letters were settled."""
    worker = _ticking_worker(settings, store)
    settled = uvloop.run(_until_signal(worker, work_for(worker, seconds)))
    if not worker.was_stopped:
        _say_the_last_words(settings, store)
    return settled


async def tick(settings: Settings, store: Store, seconds: float, clocks: SeenClocks | None = None) -> int:
    """The same inside a process that has a loop and signals of its own, and may hand on its ``clocks``."""
    return await work_for(_ticking_worker(settings, store, clocks), seconds)


def _ticking_worker(settings: Settings, store: Store, clocks: SeenClocks | None = None) -> Worker:
    # A name of its own: ticks may come one upon the other, and beside a worker of the same process.
    return make_worker(settings, store, no_metrics(), f"tick-{uuid.uuid4().hex[:12]}", clocks)


def run_until_mailout_ends(settings: Settings, store: Store, mailout: Mailout, *, silent: bool) -> None:
    """Send in the foreground, with progress, until the mailout is over or paused, or its sender is held."""
    worker = make_worker(settings, store, no_metrics())
    tune_the_interpreter()
    with measuring("Sending", None, silent=silent) as show:
        ended = _mailout_ends(settings, store, mailout, show)
        uvloop.run(_until_signal(worker, worker.run(ended)))
    if not worker.was_stopped:
        _say_the_last_words(settings, store)


def tune_the_interpreter() -> None:
    """For a process that makes many letters: it is the difference of a tenth."""
    # A letter makes no cycles, so they need not be looked for after every 700 objects.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    # The ledger's thread comes back from the database five times a turn, to a loop that is busy.
    sys.setswitchinterval(0.0005)


def _say_the_last_words(settings: Settings, store: Store) -> None:
    """The reports of what ended, before the process does; Notion is told, too, if it listens. What cannot be
    told now, the next worker tells."""
    with suppress(Unavailable):
        write_due_reports(settings, store)
    telling = threading.Thread(target=_tell_notion, args=(settings, store), daemon=True)
    telling.start()
    telling.join(LAST_WORDS_WITHIN)


def _tell_notion(settings: Settings, store: Store) -> None:
    for _, chore in make_notion_chores(settings, store):
        try:
            chore()
        except Exception as exc:  # noqa: BLE001 (the process is about to end, and its work is done)
            log.warning("Notion was not told", extra={"fields": {"error": str(exc)}})


def _mailout_ends(
    settings: Settings, store: Store, sent: Mailout, show: Show
) -> Callable[[Worker], Awaitable[bool]]:
    keys, zone = keys_of(settings), time_zone(settings)
    looked = time.monotonic()
    pause = BOOKS_EVERY
    standstill: Standstill | None = None

    def look() -> None:
        """Show how far it is, and why nothing moves."""
        nonlocal standstill
        mailout, books = store.mailouts.get(sent.tenant_id, sent.id), store.jobs.books(sent.id)
        if mailout is not None:
            progress = explain_progress(store, mailout, books, keys)
            standstill = progress.standstill
            still = waiting_line(progress, zone)
            note = "" if still else " ".join(progress_lines(progress, zone))
            show(books.planned - books.open, books.planned, note, still)

    async def ended(worker: Worker) -> bool:
        nonlocal looked, pause
        if time.monotonic() - looked >= pause:
            # Counting a million rows takes its time: look the less often, the longer it takes.
            began = time.monotonic()
            await to_daemon_thread(look)
            looked = time.monotonic()
            pause = max(BOOKS_EVERY, 20 * (looked - began))
        mailout = await to_daemon_thread(store.mailouts.get, sent.tenant_id, sent.id)
        over = mailout is None or mailout.status != MailoutStatus.SENDING or mailout.paused
        # A held sender waits for a person: whoever sits here is told why instead of waiting for hours.
        if mailout is not None and mailout.sender_id != OWN_SENDER:
            over = over or _waits_for_a_person(standstill)
        else:
            over = over or await worker.held() is not None
        if over:
            await to_daemon_thread(look)
        return over

    return ended


def _waits_for_a_person(standstill: Standstill | None) -> bool:
    """The sender is held, and not tried again in a moment."""
    if standstill is None or standstill.cause is not Cause.HELD:
        return False
    return standstill.next_try_at is None or standstill.next_try_at - datetime.now(UTC) > SHORT_WAIT


async def _until_signal(worker: Worker, work: Coroutine[Any, Any, T]) -> T:
    with _on_signal(worker.stop):
        return await work


@contextmanager
def _on_signal(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM, Ctrl-C and a closed terminal ask to stop; what is on the wire is waited for."""
    loop = asyncio.get_running_loop()
    numbers = stopping_signals()
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def stopping_signals() -> list[signal.Signals]:
    """Under nohup a closed terminal is no reason to stop: SIGHUP is ignored then, and stays so."""
    asked = [signal.SIGTERM, signal.SIGINT]
    return asked if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [*asked, signal.SIGHUP]


# -- the HTTP service ------------------------------------------------------------------------------


def run_service(settings: Settings, store: Store, *, with_worker: bool) -> None:
    """HTTP, and a worker beside it; both stop together."""
    uvloop.run(_serve(settings, store, with_worker=with_worker))


async def _serve(settings: Settings, store: Store, *, with_worker: bool) -> None:
    from sendonce.entrypoints.http import create_app
    from sendonce.entrypoints.http.connections import ConnectionLimits, connections_beside
    from sendonce.entrypoints.http.server import bound_socket, quiet_server

    metrics = make_metrics(store)
    worker = make_worker(settings, store, metrics) if with_worker else None

    clocks = SeenClocks()

    async def tick_for(seconds: float) -> dict[str, int]:
        return {"settled": await tick(settings, store, seconds, clocks)}

    app = create_app(settings, store, metrics, tick=tick_for)
    tune_the_interpreter()
    listener = bound_socket(settings.host, settings.port)
    letters = settings.concurrency if with_worker else 0
    server = quiet_server(app, ConnectionLimits(connections=connections_beside(letters)))

    def stop() -> None:
        server.should_exit = True
        if worker is not None:
            worker.stop()

    where = listener.getsockname()[:2]
    what = {
        "address": f"http://{where[0]}:{where[1]}",
        "transport": settings.transport,
        "worker": with_worker,
    }
    log.info("serving", extra={"fields": what})
    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(server.serve([listener]))]
    if worker is not None:
        tasks.append(asyncio.create_task(worker.run()))
    with _on_signal(stop):
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        stop()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
