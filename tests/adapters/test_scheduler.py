"""sendonce scheduler, as a process: it keeps house, sends nothing, and goes when it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sendonce.adapters.stores.sql import open_store
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.flows.mailouts.keep_house import Housekeeper, HouseRules
from sendonce.settings import load_settings
from sendonce.wiring.stores import state_directory
from tests.conformance.stage import Stage


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """Made here, not copied: from a copy nothing may be sent."""
    opened = open_store(f"sqlite:///{tmp_path}/sendonce.db")
    yield opened
    opened.close()


def environment(store: SqlStore, directory: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": f"sqlite:///{store.database.sqlite_file}",
        "STATE_DIR": str(directory / "state"),
        "MAILDIR_PATH": str(directory / "maildir"),
        "BURY_INTERVAL_SECONDS": "0.2",
        **more,
    }


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "sendonce", *words]


@contextmanager
def scheduler(store: SqlStore, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command("scheduler"), env=environment(store, directory), cwd=directory, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "waited in vain"
        time.sleep(0.02)


def test_a_started_mailout_is_planned_and_not_sent_and_sigterm_ends_it_well(
    store: SqlStore, tmp_path: Path
) -> None:
    """The jobs wait for a worker; the exit code is 0."""
    mailout = Stage(store).started(3)
    with scheduler(store, tmp_path) as process:
        until(lambda: store.jobs.books(mailout).scheduled == 3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert not (tmp_path / "maildir").exists()


def test_a_dead_worker_that_shares_the_state_directory_is_buried(store: SqlStore, tmp_path: Path) -> None:
    """What it had claimed and not yet put on the wire is scheduled again at once."""
    mailout = Stage(store).started(1)
    dying = environment(store, tmp_path, FAILPOINT="claimed:1")
    died = subprocess.run(command("worker", "--until-idle"), env=dying, cwd=tmp_path, stderr=subprocess.PIPE)
    assert died.returncode == -signal.SIGKILL
    assert store.jobs.books(mailout).sending == 1
    with scheduler(store, tmp_path):
        until(lambda: store.jobs.books(mailout).scheduled == 1)
        until(lambda: not store.workers.open())


def test_a_cancelled_mailout_is_brought_to_its_end(store: SqlStore, tmp_path: Path) -> None:
    """Its jobs are skipped and it is no longer sending, though no worker runs."""
    stage = Stage(store)
    mailout = stage.running(2)
    assert store.dispatches.cancel(mailout)
    with scheduler(store, tmp_path):
        until(lambda: not store.mailouts.with_status(MailoutStatus.SENDING))
    assert store.jobs.books(mailout).skipped == 2


def test_a_chore_that_fails_or_hangs_stops_neither_the_others_nor_the_end(
    store: SqlStore, tmp_path: Path
) -> None:
    """A mistake is logged and tried again; a thread that does not come back is left behind."""
    mailout = Stage(store).started(3)
    release, planned = threading.Event(), threading.Event()
    failed, gave_up = [], []

    def fail() -> None:
        failed.append(True)
        if len(failed) > 2 and store.jobs.books(mailout).scheduled == 3:
            planned.set()
        raise KeyError("a mistake")

    async def keep_house() -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        keeping = asyncio.create_task(keeper.run(stopping))
        await loop.run_in_executor(None, planned.wait, 20)
        stopping.set()
        await keeping

    settings = load_settings(environment(store, tmp_path))
    chores = [(0.01, fail), (0.01, lambda: gave_up.append(not release.wait(20)))]
    state = state_directory(settings, store)
    keeper = Housekeeper(store, state, HouseRules(1.0, 1.0, 60.0), lambda: None, chores)
    asyncio.run(keep_house())
    assert len(failed) > 2
    assert gave_up == []
    release.set()


def test_a_halted_ledger_ends_it_with_the_reason(store: SqlStore, tmp_path: Path) -> None:
    """Exit code 3, and the way out is on the screen."""
    store.ledger.halt("The database was restored. Run 'sendonce db adopt'.")
    with scheduler(store, tmp_path) as process:
        _, said = process.communicate(timeout=20)
        assert process.returncode == 3
    assert b"sendonce db adopt" in said
