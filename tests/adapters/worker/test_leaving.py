"""How workers leave, how they die, and what is known of them afterwards."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.adapters.worker.stage import accepted, bury
from tests.crash.failing_sync import FailingDisk
from tests.crash.world import CONNECTIONS, PROGRAM, World, until


def test_sigterm_drains_and_leaves_nothing_behind(world: World) -> None:
    world.plan(300)
    worker = world.worker()
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    began = time.monotonic()
    assert worker.end() == 0, worker.log.read_text()
    assert time.monotonic() - began < 30
    states = world.states()
    assert set(states) <= {"sent", "scheduled"}
    assert states.get("sent", 0) == len(accepted(world))
    assert [row.end for row in world.eye.rows('SELECT "end" FROM workers')] == ["left"]
    assert not list((world.disk / "state").glob("*/workers/*"))


def _own_the_terminal() -> None:
    """These tests may run under nohup, whose children ignore SIGHUP."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_closed_terminal_drains_like_sigterm(world: World) -> None:
    """The kernel sends SIGHUP, and nothing can be written to the terminal any more."""
    world.plan(300)
    master, terminal = pty.openpty()
    sending = subprocess.Popen(
        [*PROGRAM, "worker"],
        env=world.environment,
        cwd=world.directory,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=_own_the_terminal,
    )
    os.close(terminal)
    try:
        until(lambda: world.eye.sending_of(sending.pid), 20, "letters are sending")
    finally:
        os.close(master)
        sending.wait(20)
    assert set(world.states()) <= {"sent", "scheduled"}
    assert [row.end for row in world.eye.rows('SELECT "end" FROM workers')] == ["left"]


def test_under_nohup_a_closed_terminal_changes_nothing(world: World) -> None:
    world.plan(60)
    worker = world.worker(program=["nohup", *PROGRAM])
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    worker.signal(signal.SIGHUP)
    until(lambda: world.eye.count("sent") == 60, 30, "all is sent all the same")
    assert worker.end() == 0


def test_who_leaves_when_nothing_is_due_leaves_no_mailout_open_and_no_report_unwritten(world: World) -> None:
    world.plan(60)
    world.run("worker", "--until-idle")
    assert [row.result for row in world.eye.rows("SELECT result FROM dispatches")] == ["sent"]
    (report,) = (world.disk / "state" / "reports").glob("*.csv")
    assert len(report.read_text(encoding="utf-8-sig").splitlines()) == 1 + 60


def test_a_report_that_cannot_be_written_keeps_nobody_from_sending(world: World) -> None:
    world.plan(60)
    (world.disk / "state" / "reports" / f"{world.mailout}.csv").mkdir(parents=True)
    world.run("worker", "--until-idle")
    assert world.states() == {"sent": 60}


def test_a_provider_that_hangs_leaves_its_own_calls_in_doubt_and_no_others(world: World) -> None:
    world.plan(100)
    world.sandbox.faults(hang_after=1.0, hang_seconds=60)
    worker = world.worker(SES_TIMEOUT_SECONDS="60")
    until(lambda: len(accepted(world)) == CONNECTIONS, 20, "all connections hang")
    began = time.monotonic()
    assert worker.end() == 0, worker.log.read_text()
    assert time.monotonic() - began < 30
    assert world.states() == {"in_doubt": CONNECTIONS, "scheduled": 100 - CONNECTIONS}


@pytest.mark.parametrize(
    ("failpoint", "times", "fewest", "most"),
    [
        ("wire-before", 7, 0, 0),
        ("wire-after", 7, 1, 1),
        ("body-after", 7, 1, 1),
        ("reply-before", 7, 1, 1),
        ("reply-after", 7, 0, 0),
        # The ledger has a thread of its own: meanwhile the connection may have a letter on the wire.
        ("claim-before-commit", 3, 0, 1),
        ("claimed", 3, 0, 1),
        ("settle-before", 3, 0, 1),
        ("settle-after", 3, 0, 1),
    ],
)
def test_the_journal_of_a_killed_worker_settles_all_but_what_was_on_the_wire(
    world: World, failpoint: str, times: int, fewest: int, most: int
) -> None:
    """Never wired: scheduled again at once. Answered: settled. In between: in doubt, one a connection."""
    world.plan(30)
    worker = world.worker(FAILPOINT=f"{failpoint}:{times}", CONCURRENCY="1")
    assert worker.wait() == -signal.SIGKILL
    assert bury(world) == 1
    states = world.states()
    in_doubt = states.get("in_doubt", 0)
    assert fewest <= in_doubt <= most
    assert set(states) <= {"sent", "scheduled", "in_doubt"}
    assert 0 <= len(accepted(world)) - states.get("sent", 0) <= in_doubt


def test_a_journal_that_went_back_lets_nothing_be_sent_again(world: World) -> None:
    """A backup of the state directory was put back over it. It does not know of the letters sent since."""
    world.plan(400)
    worker = world.worker("--name", "mailer", CONCURRENCY="1")
    journal = until_found(world, "workers/mailer")
    until(lambda: world.eye.count("sent") > 10, 20, "letters leave")
    backup = journal.read_bytes()
    until(lambda: world.eye.count("sent") > 60, 20, "more letters leave")
    worker.kill()
    journal.write_bytes(backup)
    left = world.eye.count("sending")
    assert bury(world) == 1
    assert world.eye.count("in_doubt") == left
    assert len(accepted(world)) == len(set(accepted(world)))


def until_found(world: World, name: str) -> Path:
    """A file in the state directory of the ledger."""
    root = Path(world.environment["STATE_DIR"])
    until(lambda: any(root.glob(f"*/{name}")), 20, f"{name} is there")
    return next(root.glob(f"*/{name}"))


def test_a_second_worker_of_the_same_name_is_refused(world: World) -> None:
    world.plan(400)
    first = world.worker("--name", "mailer")
    until(lambda: world.registered(first), 20, "the first is there")
    complaint = world.run("worker", "--name", "mailer", expect=3)
    assert "There is a worker named 'mailer' already" in complaint
    first.kill()
    again = world.worker("--name", "mailer")
    until(lambda: world.registered(again), 20, "its successor may have the name")
    assert again.end() == 0


def test_a_failed_sync_ends_the_process(world: World) -> None:
    """After one nobody can know what is on the disk. A retry would succeed, and mean nothing."""
    world.plan(300)
    disk = FailingDisk(world.directory)
    worker = world.worker(program=PROGRAM, **disk.settings)
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    disk.break_down()
    assert worker.wait() == 1
    assert "could not be synced to the disk" in worker.log.read_text()
    assert "Traceback" not in worker.log.read_text()
    disk.mend()
    world.serve()
    world.finish()
    assert len(accepted(world)) == len(set(accepted(world))) == 300


def test_a_killed_worker_is_told_of_in_one_line(world: World) -> None:
    """The log names who was buried and on what proof."""
    world.plan(60)
    worker = world.worker()
    until(lambda: world.eye.sending_of(worker.pid), 20, "letters are sending")
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    successor = world.worker()
    until(
        lambda: world.eye.count("sent") + world.eye.count("in_doubt") == 60, 20, "its successor has gone on"
    )
    assert successor.end() == 0
    (burial,) = [line for line in successor.lines() if line["event"] == "buried a dead worker"]
    assert f"(pid {worker.pid}) is dead: its lock is free" in burial["proof"]
    assert burial["in_doubt"] <= CONNECTIONS


def test_a_planner_killed_at_each_chunk_plans_everybody_once(world: World) -> None:
    world.begin(12_000)
    for planned in (5_000, 10_000, 12_000):
        assert world.worker(FAILPOINT="plan-chunk:1").wait() == -signal.SIGKILL
        assert world.eye.number("SELECT count(*) FROM message_jobs") == planned
        world.eye.change("UPDATE dispatches SET planner_until = '2020-01-01 00:00:00.000000'")
    assert world.eye.number("SELECT count(DISTINCT recipient) FROM message_jobs") == 12_000
    assert world.eye.rows("SELECT phase FROM dispatches")[0][0] == "running"
    assert world.states() == {"scheduled": 12_000}
