"""Duties go on through shortages and mistakes, and end with a database that nothing may be sent from."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading

import pytest

from sendonce.errors import LedgerRolledBack, Unavailable, WorkerBuried
from sendonce.flows.engine.daemon_threads import to_daemon_thread
from sendonce.flows.engine.duties import Duty, attend_to


class Troubled:
    """Raises each of its troubles once, and then succeeds."""

    def __init__(self, *troubles: Exception) -> None:
        self._troubles = list(troubles)
        self.done = asyncio.Event()

    async def __call__(self) -> None:
        if self._troubles:
            raise self._troubles.pop(0)
        self.done.set()


def done_after(*troubles: Exception) -> None:
    async def life() -> None:
        duty = Troubled(*troubles)
        task = asyncio.create_task(attend_to([Duty(0.0, duty)]))
        await asyncio.wait_for(duty.done.wait(), 5)
        task.cancel()

    asyncio.run(life())


def test_a_machine_that_is_short_of_something_ends_no_duty(caplog: pytest.LogCaptureFixture) -> None:
    """Descriptors, threads, names, a database: each is told, and the duty is done once they are back."""
    troubles = (
        OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
        OSError(errno.ENFILE, os.strerror(errno.ENFILE)),
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        RuntimeError("can't start new thread"),
        Unavailable("The database does not answer."),
    )
    done_after(*troubles)
    told = [record.__dict__["fields"]["error"] for record in caplog.records]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * len(troubles)
    assert "Too many open files" in told[0]
    assert "thread" in told[3]


def test_a_mistake_of_ours_is_told_as_an_error_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    done_after(KeyError("x"), RuntimeError("a mistake"))
    told = [(record.levelname, record.__dict__["fields"]["error"]) for record in caplog.records]
    assert told == [("ERROR", "KeyError: 'x'"), ("ERROR", "RuntimeError: a mistake")]


@pytest.mark.parametrize("end", [LedgerRolledBack("halted"), WorkerBuried("taken for dead")])
def test_a_database_that_nothing_may_be_sent_from_ends_them_all(end: Exception) -> None:
    """The others are cancelled, and whoever attends to them gets the reason."""

    async def life() -> None:
        others = Troubled()
        with pytest.raises(type(end)):
            await asyncio.wait_for(attend_to([Duty(0.0, others), Duty(0.0, Troubled(end))]), 5)
        others.done.clear()
        await asyncio.sleep(0.01)
        assert not others.done.is_set()

    asyncio.run(life())


def test_what_hangs_keeps_neither_the_others_nor_the_end_waiting() -> None:
    """A chore that never comes back has a thread of its own, which nobody waits for."""
    release, done = threading.Event(), threading.Event()
    gave_up = []
    chores = [(0.0, lambda: gave_up.append(not release.wait(20))), (0.0, done.set)]

    async def life() -> None:
        duties = asyncio.create_task(attend_to(map(Duty.of, chores)))
        assert await asyncio.to_thread(done.wait, 5)
        duties.cancel()
        await asyncio.wait({duties})

    asyncio.run(life())
    assert gave_up == []
    release.set()


def test_a_cancelled_call_is_waited_for_while_it_is_about_to_end() -> None:
    """It may be in the middle of a transaction."""
    began, release = threading.Event(), threading.Event()
    ended = []

    def call() -> None:
        began.set()
        release.wait(20)
        ended.append(True)

    async def life() -> None:
        task = asyncio.create_task(to_daemon_thread(call, finish_within=20.0))
        await asyncio.to_thread(began.wait, 5)
        task.cancel()
        asyncio.get_running_loop().call_soon(release.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    asyncio.run(life())


def test_what_a_thread_raises_is_raised_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(to_daemon_thread(fail))


def test_a_machine_that_has_no_thread_left_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the call tries it again later."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(Unavailable, match="short of threads"):
        asyncio.run(to_daemon_thread(int))
