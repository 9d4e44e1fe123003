"""The faults, one scene each: what is done to the program while it sends.

A scene gets a world in which a mailout has been started, does its worst, and leaves. The judge comes
afterwards.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random

from tests.crash.power import run_until_power_fails
from tests.crash.world import CONNECTIONS, QUIET, Process, World, until

LOST_REPLIES = {
    "reset_after": 0.03,
    "truncate": 0.02,
    "error_after": 0.02,
    "garbage": 0.01,
    "hang_after": 0.01,
}
ALL_SORTS = {
    "throttle": 0.01,
    "error_before": 0.01,
    "reset_before": 0.01,
    "reset_after": 0.01,
    "truncate": 0.01,
    "error_after": 0.01,
}
UNTIDY_EVENTS = {"duplicate": 0.2, "republish": 0.1, "shuffle": True, "late": [0.0, QUIET / 2]}
# Events that come a while after the reply leave time in which nobody knows.
EVERYDAY = {"slow": [4, 25], "events": {"late": [0.0, QUIET / 2]}}
PEOPLE_PER_KILL = 60


class NotHere(Exception):
    """This machine or this store cannot show the fault; the message says why."""


@dataclass
class Stage:
    """A world under attack. ``kills`` counts those that landed while letters were in ``sending``."""

    world: World
    dice: Random
    wanted: int
    restart_database: Callable[[], None] | None = None
    kills: int = 0
    most_in_doubt: int = 0
    notes: list[str] = field(default_factory=list)

    # -- killing -------------------------------------------------------------------------------

    def sending(self, worker: Process, seconds: float = 30.0) -> bool:
        """Wait until this worker has letters in ``sending``; False if it ended or there is nothing left."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if not worker.running or not self.left():
                return False
            if self.world.eye.sending_of(worker.pid):
                return True
            time.sleep(0.003)
        raise TimeoutError(f"Nothing was claimed for {seconds:g} s: {self.world.states()}")

    def left(self) -> int:
        """Letters yet to be sent; a mailout that is not planned yet counts as one."""
        open_jobs = "SELECT count(*) FROM message_jobs WHERE state IN ('scheduled', 'sending', 'in_doubt')"
        planning = "SELECT count(*) FROM mailouts WHERE phase = 'planning'"
        return self.world.eye.number(open_jobs) or self.world.eye.number(planning)

    def kill(self, worker: Process) -> None:
        worker.kill()
        self.count(worker)

    def count(self, dead: Process) -> None:
        """The kill landed if the dead worker's letters are still ``sending``."""
        if self.world.eye.sending_of(dead.pid):
            self.kills += 1

    def linger(self, most: float = 0.25) -> None:
        time.sleep(self.dice.uniform(0.0, most))

    @property
    def done(self) -> bool:
        return self.kills >= self.wanted or not self.left()


Scene = Callable[[Stage], None]


def random_kill(stage: Stage) -> None:
    stage.world.sandbox.faults(**ALL_SORTS)
    while not stage.done:
        worker = stage.world.worker()
        if stage.sending(worker):
            stage.linger()
        stage.kill(worker)


LETTER_POINTS = ("wire-before", "wire-after", "body-after", "reply-before", "reply-after")
COMMIT_POINTS = ("claim-before-commit", "claimed", "settle-before", "settle-after", "complete-before")


def kill_at_failpoints(stage: Stage) -> None:
    """Every point that a sending worker passes, in turn, each at a random time of passing."""
    stage.world.sandbox.faults(**ALL_SORTS)
    for name in cycle(LETTER_POINTS + COMMIT_POINTS):
        if stage.done:
            return
        times = stage.dice.randint(1, 30) if name in LETTER_POINTS else stage.dice.randint(2, 5)
        worker = stage.world.worker(FAILPOINT=f"{name}:{times}")
        until(partial(_ended_or_idle, stage, worker), 60, f"failpoint {name} is reached")
        if worker.running:
            worker.kill()
        stage.count(worker)


def _ended_or_idle(stage: Stage, worker: Process) -> bool:
    return not worker.running or not stage.left()


def kill_in_recovery(stage: Stage) -> None:
    """A worker dies, the one that buries it dies at it, before and after the settling, and again."""
    while not stage.done:
        first = stage.world.worker()
        if not stage.sending(first):
            first.kill()
            return
        stage.linger()
        stage.kill(first)
        for name in ("bury-before", "bury-after"):
            second = stage.world.worker(FAILPOINT=f"{name}:1")
            second.wait()
            stage.count(first)


def stop_and_continue(stage: Stage) -> None:
    """A worker is stopped for ten times the burial interval while another sends, then goes on."""
    stopped, other = stage.world.worker(), stage.world.worker()
    if stage.sending(stopped):
        stage.linger(0.1)
        stopped.signal(signal.SIGSTOP)
        held = stage.world.eye.sending_of(stopped.pid)
        time.sleep(5.0)
        still = stage.world.eye.sending_of(stopped.pid)
        if held and still != held and not stage.world.eye.number(_EVENTS_EXPLAIN, pid=stopped.pid):
            raise AssertionError(f"{held} letters of a stopped worker became {still}: it was taken for dead.")
        stopped.signal(signal.SIGCONT)
        stage.linger()
    stopped.end()
    other.end()


# The provider's events may end a stopped worker's letters: that is evidence, not a burial.
_EVENTS_EXPLAIN = (
    "SELECT count(*) FROM message_jobs j JOIN workers w ON w.id = j.worker_id "
    "WHERE w.pid = :pid AND j.send_event_at IS NOT NULL"
)


def race(count: int) -> Scene:
    def racing(stage: Stage) -> None:
        stage.world.sandbox.faults(**ALL_SORTS)
        racers = [stage.world.worker() for _ in range(count)]
        while not stage.done:
            place = stage.dice.randrange(count)
            if stage.sending(racers[place]):
                stage.linger()
            stage.kill(racers[place])
            racers[place] = stage.world.worker()
        for racer in racers:
            racer.end()

    return racing


def restart_database(stage: Stage) -> None:
    """PostgreSQL is stopped without a goodbye while letters are on the wire."""
    if stage.restart_database is None:
        raise NotHere("SQLite has no server to restart")
    worker = stage.world.worker()
    for _ in range(3):
        if not stage.sending(worker):
            break
        stage.linger()
        stage.restart_database()
    assert worker.running, worker.log.read_text()
    worker.end()


def untidy_events(stage: Stage) -> None:
    stage.world.sandbox.faults(events=UNTIDY_EVENTS)
    _kill_a_few(stage)


def lost_replies(stage: Stage) -> None:
    stage.world.sandbox.faults(**LOST_REPLIES, hang_seconds=3)
    _kill_a_few(stage)


def _kill_a_few(stage: Stage) -> None:
    while not stage.done:
        worker = stage.world.worker()
        if stage.sending(worker):
            stage.linger(0.4)
        stage.kill(worker)


def clock_jump(stage: Stage) -> None:
    """The worker's wall clock leaps two hours ahead, then back, while it sends and has letters in doubt."""
    stage.world.sandbox.faults(reset_after=0.05, events={"late": [0.0, QUIET / 2]})
    program = [sys.executable, "-m", "tests.crash.jumping_clock"]
    worker = stage.world.worker(program=program)
    for _ in range(2):
        if not stage.sending(worker):
            break
        stage.linger()
        worker.signal(signal.SIGUSR1)
        time.sleep(QUIET)
        worker.signal(signal.SIGUSR2)
        stage.linger()
    assert worker.running, worker.log.read_text()
    worker.end()


def full_disk(stage: Stage) -> None:
    """The disk of the database and of the journals fills up in mid-send, and is freed again."""
    filler = stage.world.disk / "filler"
    if not stage.world.disk.is_mount():
        raise NotHere("it takes root to mount a small tmpfs")
    worker = stage.world.worker()
    for _ in range(2):
        if not stage.sending(worker):
            break
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            except OSError:
                pass
        time.sleep(1.0)
        filler.unlink()
    assert worker.running, worker.log.read_text()
    worker.end()


def power_loss(stage: Stage) -> None:
    """What was never synced is gone, the journals count for nothing, the boot id is another one."""
    file = stage.world.disk / "sendonce.db"
    if not file.exists():
        raise NotHere(
            "what a PostgreSQL server keeps through a power cut is its own promise; fsync is checked"
        )
    if stage.world.service is not None:
        stage.world.service.end()
    while not stage.done:
        run_until_power_fails(stage, file)
    stage.world.serve()


@dataclass(frozen=True)
class Fault:
    name: str
    scene: Scene
    share: float
    """Its part of all the kills that were asked for; 0 for a scene that does not count kills."""
    bound: int = CONNECTIONS
    """In doubt at most by one death."""


FAULTS = (
    Fault("SIGKILL at random", random_kill, 0.34),
    Fault("SIGKILL at each failpoint", kill_at_failpoints, 0.2),
    Fault("SIGKILL again in recovery", kill_in_recovery, 0.1),
    Fault("two workers racing", race(2), 0.08),
    Fault("three workers racing", race(3), 0.08),
    Fault("events twice, shuffled, late", untidy_events, 0.06),
    Fault("replies lost after acceptance", lost_replies, 0.08),
    Fault("SIGSTOP, then SIGCONT", stop_and_continue, 0.0),
    Fault("database restarted", restart_database, 0.0),
    Fault("clock jumped", clock_jump, 0.0),
    Fault("disk full", full_disk, 0.0),
    # A power cut leaves nothing to believe: two claim groups are the bound.
    Fault("power lost", power_loss, 0.06, bound=2 * 50),
)


@contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """A few megabytes of disk at ``directory``; False where that is not allowed."""
    directory.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "sendonce-crash", str(directory)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(directory)], check=True)
