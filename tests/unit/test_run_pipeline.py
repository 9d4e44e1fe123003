"""Each step has its turn and leaves a line; what keeps one from its work does not keep the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from sendonce.domain.prospecting.pipeline import (
    JournalLine,
    Role,
    StepCount,
    StepName,
    is_broken,
    steps_wanted,
)
from sendonce.errors import StoreLost, Unavailable
from sendonce.flows.prospecting.run_pipeline import run_cycle, run_loop, run_until_idle

NOW = datetime(2026, 3, 2, tzinfo=UTC)


class Kept:
    """A journal on paper."""

    def __init__(self) -> None:
        self.kept: list[JournalLine] = []

    def add(self, line: JournalLine) -> None:
        self.kept.append(line)

    def lines(
        self, *, step: StepName | None = None, before: str = "", limit: int = 1000
    ) -> Sequence[JournalLine]:
        return self.kept


def broken() -> StepCount:
    raise Unavailable("The provider is away.")


def lost() -> StepCount:
    raise StoreLost("The database is away.")


def line(taken: int) -> JournalLine:
    return JournalLine(StepName.VISIT, "w", taken, taken, 0, 0.0, "", NOW)


def test_every_step_leaves_a_line_and_a_broken_one_stops_nobody() -> None:
    journal = Kept()
    steps = {StepName.POLL: broken, StepName.VISIT: lambda: StepCount(3, 2, 1, "one was away")}
    lines = run_cycle(steps, journal, "w", lambda: NOW)
    assert journal.kept == lines
    assert [(it.step, it.taken, it.done, it.failed, it.note) for it in lines] == [
        (StepName.POLL, 0, 0, 1, "The provider is away."),
        (StepName.VISIT, 3, 2, 1, "one was away"),
    ]
    assert [is_broken(it) for it in lines] == [True, False]


def test_without_a_database_nothing_goes_on() -> None:
    with pytest.raises(StoreLost):
        run_cycle({StepName.POLL: lost}, Kept(), "w", lambda: NOW)


def test_a_stop_is_heard_between_steps() -> None:
    journal = Kept()
    run_cycle(dict.fromkeys(StepName, StepCount), journal, "w", lambda: NOW, lambda: len(journal.kept) == 2)
    assert len(journal.kept) == 2


def test_until_idle_ends_with_the_cycle_that_found_nothing() -> None:
    cycles = iter([[line(5)], [line(1)], [line(0)], [line(9)]])
    lines = run_until_idle(lambda: next(cycles), lambda: False)
    assert [it.taken for it in lines] == [5, 1, 0]


def test_a_loop_waits_only_when_there_is_nothing_to_do() -> None:
    cycles = iter([[line(5)], [line(0)], [line(2)]])
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 3

    run_loop(lambda: next(cycles), 60.0, wait)
    assert waits == [0.0, 60.0, 0.0]


def test_roles_share_the_steps() -> None:
    """Each step is one role's, and steps keep their order however they are named."""
    scheduler, worker = (steps_wanted((), role) for role in Role)
    assert scheduler + worker == list(StepName) == steps_wanted((), None)
    assert steps_wanted([StepName.WRITE, StepName.VISIT], Role.SCHEDULER) == [StepName.VISIT, StepName.WRITE]
