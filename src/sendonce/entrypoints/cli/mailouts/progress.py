"""Progress: a bar on a terminal, a plain line now and then in a pipe, nothing with --json."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import tzinfo
from typing import Protocol

from sendonce.domain.engine.moments import shown_moment
from sendonce.domain.mailouts.progress import Progress, Standstill
from sendonce.entrypoints.cli.output import say_error

LINE_EVERY = 5.0
SAFE_TO_LEAVE = "Ctrl-C is safe: no letter is lost, and the same command goes on where it stopped."


@contextmanager
def counting(what: str, *, silent: bool = False) -> Iterator[Callable[[int], None]]:
    """Count up with no known end; call the given function with how many more are done."""
    with measuring(what, None, silent=silent) as update:
        done = 0

        def advance(more: int) -> None:
            nonlocal done
            done += more
            update(done, None)

        yield advance


def standstill_line(still: Standstill, zone: tzinfo) -> str:
    """Why nothing moves, and when it may, in one line."""
    next_try = f" Next try: {shown_moment(still.next_try_at, zone)}." if still.next_try_at else ""
    # A provider's own words may lack their full stop.
    detail = still.detail if still.detail.endswith((".", "!", "?")) else f"{still.detail}."
    return f"{detail}{next_try}"


def progress_lines(progress: Progress, zone: tzinfo) -> list[str]:
    """How a mailout gets on, for people: nothing where there is nothing to say."""
    still, end = progress.standstill, progress.estimated_end
    lines = [standstill_line(still, zone), still.fix] if still else []
    if progress.rate:
        until = f", done at about {shown_moment(end, zone)}" if end else ""
        lines.append(f"{progress.rate:g} letters per second{until}.")
    if lines:
        lines.append(f"Workers at work: {progress.workers}.")
    return [line for line in lines if line]


def waiting_line(progress: Progress, zone: tzinfo) -> str:
    """For who sits before a mailout that does not move: why, until when, and that they may leave."""
    if progress.standstill is None:
        return ""
    return " ".join([*progress_lines(progress, zone), SAFE_TO_LEAVE])


class Show(Protocol):
    """How many are done, of how many when that is known, and a word on how it goes, or on why it does not."""

    def __call__(self, done: int, total: int | None, note: str = "", still: str = "") -> None: ...


@contextmanager
def measuring(what: str, total: int | None, *, silent: bool = False) -> Iterator[Show]:
    """Call the given function with how far it is."""
    if silent:
        yield _nothing
    elif sys.stderr.isatty():
        yield from _bar(what, total)
    else:
        yield from _lines(what)


def _nothing(done: int, total: int | None, note: str = "", still: str = "") -> None:
    """No progress is shown."""


def _bar(what: str, total: int | None) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(what, total=total)
        said = ""

        def update(done: int, total: int | None, note: str = "", still: str = "") -> None:
            nonlocal said
            if still and still != said:  # a bar has no room for it
                bar.console.print(still, markup=False, highlight=False, soft_wrap=True)
            said = still
            bar.update(task, completed=done, total=total, description=f"{what}. {note}" if note else what)

        yield update


def _lines(what: str) -> Iterator[Show]:
    last = time.monotonic()

    def update(done: int, total: int | None, note: str = "", still: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            words = still or note
            say_error(f"{what}: {done}" + (f" of {total}" if total else "") + (f". {words}" if words else ""))

    yield update
