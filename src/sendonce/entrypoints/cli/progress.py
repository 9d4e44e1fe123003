"""Progress: a bar on a terminal, a plain line now and then in a pipe, nothing with --json."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sendonce.entrypoints.cli.output import say_error

LINE_EVERY = 5.0


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


@contextmanager
def measuring(
    what: str, total: int | None, *, silent: bool = False
) -> Iterator[Callable[[int, int | None], None]]:
    """Call the given function with how many are done, and of how many when that is known."""
    if silent:
        yield _nothing
    elif sys.stderr.isatty():
        yield from _bar(what, total)
    else:
        yield from _lines(what)


def _nothing(_done: int, _total: int | None) -> None:
    """No progress is shown."""


def _bar(what: str, total: int | None) -> Iterator[Callable[[int, int | None], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(what: str) -> Iterator[Callable[[int, int | None], None]]:
    last = time.monotonic()

    def update(done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            say_error(f"{what}: {done}" + (f" of {total}" if total else ""))

    yield update
