"""A duty goes on through shortages, and ends at a mistake."""

from __future__ import annotations

import asyncio
import errno
import os
import socket

import pytest

from sendonce.errors import LedgerRolledBack, Unavailable
from sendonce.flows.engine.repeat import repeat


class Duty:
    """Raises each of its troubles once, and then succeeds."""

    def __init__(self, *troubles: Exception) -> None:
        self._troubles = list(troubles)
        self.done = asyncio.Event()

    async def __call__(self) -> None:
        if self._troubles:
            raise self._troubles.pop(0)
        self.done.set()


def test_a_machine_that_is_short_of_something_ends_no_duty(caplog: pytest.LogCaptureFixture) -> None:
    """Descriptors, threads, names, a database: each is told, and the duty is done once they are back."""
    troubles = (
        OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
        OSError(errno.ENFILE, os.strerror(errno.ENFILE)),
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        RuntimeError("can't start new thread"),
        Unavailable("The database does not answer."),
    )

    async def life() -> None:
        duty = Duty(*troubles)
        task = asyncio.create_task(repeat(0.0, duty))
        await asyncio.wait_for(duty.done.wait(), 5)
        task.cancel()

    asyncio.run(life())
    told = [record.__dict__["fields"]["error"] for record in caplog.records]
    assert len(told) == len(troubles)
    assert "Too many open files" in told[0]
    assert "thread" in told[3]


@pytest.mark.parametrize("mistake", [LedgerRolledBack("halted"), RuntimeError("a mistake"), KeyError("x")])
def test_what_does_not_pass_ends_the_duty(mistake: Exception) -> None:
    """A database that was restored, or a mistake of ours."""

    async def life() -> None:
        await asyncio.wait_for(repeat(0.0, Duty(mistake)), 5)

    with pytest.raises(type(mistake)):
        asyncio.run(life())
