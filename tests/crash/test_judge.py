"""The judge is known to see: on paper, and in programs that break a rule on purpose."""

from __future__ import annotations

import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.crash.judge import judge, judge_world
from tests.crash.power import _unsynced
from tests.crash.world import Running, World, opened, until

PEOPLE = ["a", "b", "c", "d"]
BOOKS = {"planned": 4, "sent": 2, "failed": 1, "in_doubt": 1}
STATES = [("a", "sent"), ("b", "sent"), ("c", "failed"), ("d", "in_doubt")]


def test_a_good_run_is_clean_but_for_its_doubts() -> None:
    findings = judge(PEOPLE, ["a", "b", "d"], STATES, BOOKS)
    assert (findings.duplicates, findings.lost, findings.misbooked) == ([], [], [])
    assert findings.in_doubt == ["d"]


def test_a_second_copy_is_seen() -> None:
    assert judge(PEOPLE, ["a", "b", "b"], STATES, BOOKS).duplicates == ["b"]


def test_a_letter_that_the_ledger_believes_sent_and_nobody_took_is_lost() -> None:
    assert judge(PEOPLE, ["a"], STATES, BOOKS).lost == ["b"]


def test_a_letter_that_was_never_planned_is_lost() -> None:
    findings = judge([*PEOPLE, "e"], ["a", "b"], STATES, BOOKS)
    assert findings.lost == ["e"]
    assert findings.misbooked


def test_a_letter_left_in_the_queue_is_lost() -> None:
    states = [*STATES[1:], ("a", "scheduled")]
    assert judge(PEOPLE, ["b"], states, {"planned": 4, "sent": 1, "scheduled": 1}).lost == ["a"]


def test_an_accepted_letter_that_the_ledger_believes_refused_is_seen() -> None:
    assert judge(PEOPLE, ["a", "b", "c"], STATES, BOOKS).misbooked == ["c was accepted but is failed"]


@pytest.mark.parametrize("books", [{**BOOKS, "sent": 3}, {**BOOKS, "planned": 5}, {**BOOKS, "dead": 1}])
def test_books_that_do_not_balance_are_seen(books: dict[str, int]) -> None:
    assert judge(PEOPLE, ["a", "b"], STATES, books).misbooked


def test_a_power_cut_takes_what_was_written_after_the_last_finished_sync() -> None:
    trace = [
        '7 pwrite64(3</x/db-wal>, ""..., 100, 0) = 100',
        "7 fdatasync(3</x/db-wal> <unfinished ...>",
        '8 pwrite64(3</x/db-wal>, ""..., 100, 100 <unfinished ...>',
        "7 <... fdatasync resumed>) = 0",
        '7 pwrite64(4</x/db>, ""..., 4096, 8192) = 4096',
        "8 fsync(4</x/db> <unfinished ...>",
    ]
    assert _unsynced(trace) == {"/x/db-wal": [(100, 100)], "/x/db": [(8192, 4096)]}


# -- broken programs -------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with opened(
        World(tmp_path, f"sqlite:///{tmp_path}/sendonce.db", ['--faults={"slow": [5, 20]}'])
    ) as world:
        world.prepare(150)
        yield world


def broken(world: World, rule: str, **settings: str) -> Running:
    return world.worker(program=[sys.executable, "-m", "tests.crash.broken", rule], **settings)


def accepted(world: World, number: int) -> bool:
    return len(world.sandbox.acceptances()) >= number


def test_a_claim_that_is_not_durable_is_found_out(world: World) -> None:
    for wanted in (30, 60, 90):
        worker = broken(world, "claims-are-not-durable")
        until(partial(accepted, world, wanted), 20, "letters are accepted")
        worker.kill()
    assert judge_world(world).duplicates


def stopped_in_mid_send(world: World, worker: Running) -> bool:
    """Stop it, unless it is writing just now: SQLite would let nobody else write as long as it is stopped."""
    worker.signal(signal.SIGSTOP)
    file = world.database_url.removeprefix("sqlite:///")
    try:
        with closing(sqlite3.connect(file, timeout=0.1)) as database:
            database.execute("BEGIN IMMEDIATE")
        if world.eye.sending_of(worker.pid):
            return True
    except sqlite3.OperationalError:
        pass
    worker.signal(signal.SIGCONT)
    return False


def test_a_lease_taken_for_death_is_found_out(world: World) -> None:
    """The stopped worker's letters had been accepted; it just had no time to say so."""
    stopped = broken(world, "a-lease-proves-death")
    until(lambda: accepted(world, 20), 20, "letters are accepted")
    until(lambda: stopped_in_mid_send(world, stopped), 10, "it stops with letters sending")
    other = broken(world, "a-lease-proves-death", BURY_INTERVAL_SECONDS="0.2")
    until(lambda: accepted(world, 150), 20, "the other has sent the rest")
    stopped.signal(signal.SIGCONT)
    until(lambda: world.eye.count("scheduled") + world.eye.count("sending") == 0, 20, "all is sent")
    time.sleep(0.2)
    other.kill()
    assert judge_world(world).duplicates


def test_a_blind_retry_after_a_lost_reply_is_found_out(world: World) -> None:
    world.sandbox.faults(reset_after=0.2)
    broken(world, "lost-replies-are-retried")
    until(lambda: world.eye.count("sent") == 150, 30, "all is sent")
    assert judge_world(world).duplicates
