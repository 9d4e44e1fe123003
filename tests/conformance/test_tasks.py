"""Tasks: one open task for a piece of work, held by one worker at a time, taken in order."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.pipeline import JournalLine, StepName
from sendonce.domain.prospecting.tasks import MOST_ATTEMPTS, NewTask, Task, TaskKind, next_attempt
from sendonce.flows.prospecting.run_pipeline import prune_journal
from sendonce.ports.prospecting import Tasks
from tests.conformance.prospecting_stage import LEASE, NOW

HOUR = timedelta(hours=1)


@pytest.fixture
def tasks(shared_store: SqlStore) -> Tasks:
    return shared_store.tasks


def new(key: str, **rest: object) -> NewTask:
    return NewTask(DEFAULT_TENANT, TaskKind.DEDUPE, key, {"key": key}, **rest)  # type: ignore[arg-type]


def take(tasks: Tasks, limit: int = 10, worker: str = "w", now: object = NOW) -> list[Task]:
    return list(tasks.take(TaskKind.DEDUPE, worker, limit, now, LEASE))  # type: ignore[arg-type]


def keys(taken: list[Task]) -> list[str]:
    return [task.payload["key"] for task in taken]


def test_a_piece_of_work_is_one_task(tasks: Tasks) -> None:
    """Until it is done or has failed; then it can be asked for again."""
    assert tasks.add([new("a"), new("a"), new("b")], NOW) == 2
    [first, second] = take(tasks)
    assert tasks.add([new("a")], NOW) == 0
    assert tasks.done(first, NOW)
    assert tasks.fail(second, "no", NOW)
    assert tasks.count_open(TaskKind.DEDUPE) == 0
    assert tasks.add([new("a"), new("b")], NOW) == 2
    assert [task.attempt for task in take(tasks)] == [1, 1]


def test_urgent_ones_go_first_then_those_that_wait_longest(tasks: Tasks) -> None:
    tasks.add([new("late", due_at=NOW), new("early", due_at=NOW - HOUR)], NOW)
    tasks.add([new("urgent", priority=-1), new("whenever", priority=9)], NOW)
    assert keys(take(tasks, 1)) == ["urgent"]
    assert keys(take(tasks, 1)) == ["early"]
    assert keys(take(tasks, 2)) == ["late", "whenever"]


def test_a_task_is_taken_within_its_window_only(tasks: Tasks) -> None:
    tasks.add([new("a", due_at=NOW + HOUR, window_until=NOW + 2 * HOUR)], NOW)
    assert take(tasks) == []
    assert take(tasks, now=NOW + 2 * HOUR) == []
    assert keys(take(tasks, now=NOW + HOUR)) == ["a"]


def test_only_the_holder_of_the_lease_ends_a_task(tasks: Tasks) -> None:
    tasks.add([new("a")], NOW)
    [mine] = take(tasks, worker="dead")
    assert take(tasks, worker="early", now=NOW + LEASE - timedelta(seconds=1)) == []
    [theirs] = take(tasks, worker="alive", now=NOW + LEASE)
    for ended in (tasks.done(mine, NOW), tasks.fail(mine, "", NOW), tasks.put_off(mine, NOW, "", NOW)):
        assert not ended
    assert tasks.put_off(theirs, NOW + HOUR, "busy", NOW)
    assert not tasks.done(theirs, NOW)
    [again] = take(tasks, now=NOW + HOUR)
    assert again.attempt == 3
    assert tasks.done(again, NOW)


def test_the_same_worker_does_not_mistake_an_old_lease_for_its_new_one(tasks: Tasks) -> None:
    tasks.add([new("a")], NOW)
    [old] = take(tasks)
    [renewed] = take(tasks, now=NOW + LEASE)
    assert not tasks.done(old, NOW)
    assert tasks.done(renewed, NOW)


def test_what_a_dead_worker_held_is_due_at_once_and_counts_as_not_tried(tasks: Tasks) -> None:
    tasks.add([new("a"), new("b"), new("c")], NOW)
    [lost] = take(tasks, 1, worker="dead")
    [other] = take(tasks, 1, worker="alive")
    assert tasks.release("dead", NOW) == 1
    assert not tasks.done(lost, NOW)
    again = {task.id: task.attempt for task in take(tasks)}
    assert (len(again), again[lost.id]) == (2, 1)
    assert tasks.done(other, NOW)
    assert tasks.release("dead", NOW) == 0


def test_waits_grow_and_end() -> None:
    waits = [next_attempt(attempt, NOW) for attempt in range(1, MOST_ATTEMPTS + 1)]
    assert waits == [*(NOW + timedelta(minutes=minutes) for minutes in (10, 40, 160)), None]


def test_the_journal_tells_the_newest_first(shared_store: SqlStore) -> None:
    journal = shared_store.pipeline_journal
    for minute, step in enumerate((StepName.POLL, StepName.VISIT, StepName.POLL)):
        journal.add(JournalLine(step, "w", minute, 0, 0, 0.5, "", NOW + timedelta(minutes=minute)))
    newest, *rest = journal.lines()
    assert (newest.taken, newest.at) == (2, NOW + timedelta(minutes=2))
    assert journal.lines(before=newest.id) == rest
    assert [line.taken for line in journal.lines(step=StepName.POLL, limit=1)] == [2]


def test_old_lines_of_the_journal_are_forgotten(shared_store: SqlStore) -> None:
    journal = shared_store.pipeline_journal
    for day in range(5):
        journal.add(JournalLine(StepName.POLL, "w", day, 0, 0, 0.5, "", NOW + timedelta(days=day)))
    now = NOW + timedelta(days=4)
    assert prune_journal(journal, timedelta(days=2), now) == 2
    assert [line.taken for line in journal.lines()] == [4, 3, 2]
    assert prune_journal(journal, timedelta(days=2), now) == 0
