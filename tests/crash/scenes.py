"""The faults, one scene each: what is done to the program while it sends.

A scene gets a world in which a mailout has been started, does its worst, and leaves. The judge comes
afterwards.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from random import Random

from tests.crash.databases import Databases
from tests.crash.server_pair import ServerPair
from tests.crash.world import PROGRAM, QUIET, Eye, Running, World, until

LOST_REPLIES = {
    "reset_after": 0.05,
    "truncate": 0.03,
    "error_after": 0.03,
    "garbage": 0.02,
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
# A provider some way off: most kills find letters on the wire. And events that come a while after the
# reply leave time in which nobody knows.
EVERYDAY = {"slow": [15, 60], "events": {"late": [0.0, QUIET / 2]}}


class NotHere(Exception):
    """This machine or this store cannot show the fault; the message says why."""


@dataclass
class Stage:
    """A world under attack. ``kills`` counts those that landed while letters were in ``sending``."""

    world: World
    dice: Random
    wanted: int
    databases: Databases | None = None
    pair: ServerPair | None = None
    """The servers of a world whose database has a standby."""
    kills: int = 0
    most_in_doubt: int = 0
    """By one death, where no log tells it."""
    hits: Counter[str] = field(default_factory=Counter)
    """How often each failpoint has struck."""

    # -- killing -------------------------------------------------------------------------------

    def sending(self, worker: Running, seconds: float = 90.0) -> bool:
        """Wait until this worker has letters in ``sending``; False if it ended or there is nothing left."""
        return bool(self.some_sending([worker], seconds))

    def some_sending(self, workers: list[Running], seconds: float = 90.0) -> list[Running]:
        """Wait until some of the workers have letters in ``sending``: those; none if nothing is left."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            senders = {row.pid for row in self.world.eye.rows(_SENDERS)}
            found = [worker for worker in workers if worker.pid in senders]
            if found or not self.left() or not any(worker.running for worker in workers):
                return found
            time.sleep(0.008)
        raise TimeoutError(f"Nothing was claimed for {seconds:g} s: {self.world.states()}")

    def left(self) -> bool:
        """Whether there is something to kill at: letters to be sent, or a mailout that is to be planned."""
        return bool(self.world.eye.number(_LEFT))

    def kill(self, worker: Running) -> None:
        worker.kill()
        self.count(worker)

    def count(self, dead: Running) -> None:
        """The kill landed if the dead worker's letters are still ``sending``."""
        if self.world.eye.sending_of(dead.pid):
            self.kills += 1

    def linger(self, most: float = 0.1) -> None:
        time.sleep(self.dice.uniform(0.0, most))

    @property
    def done(self) -> bool:
        return self.kills >= self.wanted or not self.left()


_SENDERS = (
    "SELECT DISTINCT w.pid FROM message_jobs j JOIN workers w ON w.id = j.worker_id WHERE j.state = 'sending'"
)
_OPEN = "SELECT count(*) FROM dispatches WHERE phase <> 'over'"
_PLANNING = "SELECT count(*) FROM dispatches WHERE phase = 'planning'"
_FAIL_OVERS = "SELECT count(*) FROM audit_log WHERE action = 'fail_over'"
_LEFT = (
    "SELECT count(*) FROM dispatches d WHERE d.phase = 'planning' "
    "OR EXISTS (SELECT 1 FROM message_jobs WHERE state IN ('scheduled', 'sending'))"
)

Scene = Callable[[Stage], None]


# -- killed ----------------------------------------------------------------------------------------


def random_kill(stage: Stage) -> None:
    """The next worker is started a moment before the last one dies, every third as an interpreter of its
    own, as a service manager does it."""
    stage.world.sandbox.faults(**ALL_SORTS)
    _kill_one_after_the_other(stage, _one_more(stage))


def _kill_one_after_the_other(stage: Stage, worker: Running) -> None:
    while stage.sending(worker):
        following = _one_more(stage)
        stage.linger()
        stage.kill(worker)
        worker = following
        if stage.done:
            break
    worker.kill()


def two_regions(stage: Stage) -> None:
    """The sender's own region is paused and falls ill again and again: its letters leave now here, now
    there."""
    stage.world.sandbox.faults(next=["ok", "ok", "paused"], paused=0.1, error_after=0.02)
    worker = _one_more(stage)
    until(lambda: bool(stage.world.eye.number(_FAIL_OVERS)), 60, "the sender moves to its second region")
    _kill_one_after_the_other(stage, worker)


def _one_more(stage: Stage) -> Running:
    return stage.world.worker(program=PROGRAM if stage.dice.random() < 1 / 3 else ())


LETTER_POINTS = ("wire-before", "wire-after", "body-after", "reply-before", "reply-after")
COMMIT_POINTS = ("claim-before-commit", "claimed", "settle-before", "settle-after")
BURIAL_POINTS = ("bury-before", "bury-after")


def kill_at_failpoints(stage: Stage) -> None:
    """Every point that a planning or sending worker passes, in turn, each at a random time of passing."""
    stage.world.sandbox.faults(**ALL_SORTS)
    if stage.world.eye.number(_PLANNING):
        _run_into(stage, "plan-chunk", 1)
    for name in cycle(LETTER_POINTS + COMMIT_POINTS):
        if stage.done:
            break
        _run_into(stage, name, stage.dice.randint(1, 12 if name in LETTER_POINTS else 3))


def kill_at_every_failpoint(stage: Stage) -> None:
    """The same, and the last point of all: when the mailout is about to be called over."""
    kill_at_failpoints(stage)
    _die_at_the_end(stage)


def _run_into(stage: Stage, name: str, times: int) -> None:
    """A worker that dies at the failpoint, unless there is nothing left to do before it gets there."""
    worker = stage.world.worker(FAILPOINT=f"{name}:{times}")
    until(partial(_ended_or_idle, stage, worker), 60, f"failpoint {name} is reached")
    if worker.was_killed:
        stage.hits[name] += 1
    worker.kill()
    stage.count(worker)


def _die_at_the_end(stage: Stage) -> None:
    """A worker sends what is left, and dies when it is about to say that the mailout is over."""
    worker = stage.world.worker(FAILPOINT="complete-before:1")
    with suppress(TimeoutError):  # letters may wait for a retry that is too far ahead
        until(lambda: not worker.running or not stage.world.eye.number(_OPEN), 30, "the mailout is over")
    stage.hits["complete-before"] += worker.was_killed
    worker.kill()
    stage.count(worker)


def _ended_or_idle(stage: Stage, worker: Running) -> bool:
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
        for name in BURIAL_POINTS:
            second = stage.world.worker(FAILPOINT=f"{name}:1")
            second.wait()
            stage.hits[name] += second.was_killed
            stage.count(first)
        stage.most_in_doubt = max(stage.most_in_doubt, doubts_by_death(stage.world.eye, first.pid))


def doubts_by_death(eye: Eye, pid: int) -> int:
    """How many letters a worker's death has put in doubt, where whoever buried it died before it told.

    A reply that was lost while the worker lived is in doubt for a reason of its own: its connection may have
    had the next letter on the wire already, so such doubts come on top of the bound.
    """
    return eye.number(_DOUBTS_BY_DEATH, proof=f"%(pid {pid}) is dead%")


_DOUBTS_BY_DEATH = (
    "SELECT count(*) FROM message_jobs "
    "WHERE state = 'in_doubt' AND death_proof LIKE :proof AND reason = death_proof"
)


def kill_without_a_disk(stage: Stage) -> None:
    """Nobody can see that a worker is dead. All that it held rests until its signatures expire."""
    stage.world.sandbox.faults(**ALL_SORTS)
    while not stage.done:
        worker = stage.world.worker()
        if stage.sending(worker):
            stage.linger(0.2)
        stage.kill(worker)
        stage.most_in_doubt = max(stage.most_in_doubt, stage.world.eye.sending_of(worker.pid))


def race(count: int) -> Scene:
    """One of several dies, again and again, and another takes its place."""

    def racing(stage: Stage) -> None:
        stage.world.sandbox.faults(**ALL_SORTS)
        racers = [stage.world.worker() for _ in range(count)]
        while not stage.done:
            senders = stage.some_sending(racers)
            if not senders:
                break
            victim = stage.dice.choice(senders)
            stage.linger()
            racers[racers.index(victim)] = stage.world.worker()
            stage.kill(victim)
        for racer in racers:
            racer.end()

    return racing


def untidy_events(stage: Stage) -> None:
    stage.world.sandbox.faults(events=UNTIDY_EVENTS)
    _kill_again_and_again(stage)


def lost_replies(stage: Stage) -> None:
    stage.world.sandbox.faults(**LOST_REPLIES, hang_seconds=3)
    _kill_again_and_again(stage)


# The sandbox's couriers knock again after at most five seconds, as SNS does after twenty.
COURIERS_REST = 5.0
DEAF_QUIET = COURIERS_REST + 3.0


def deaf_service(stage: Stage) -> None:
    """The service dies with a worker and stays away for longer than the quiet time. Events knock in vain
    meanwhile, and when it is back some come only after others have shown that the route works."""
    world = stage.world
    while not stage.done:
        worker = world.worker()
        if stage.sending(worker):
            stage.linger(0.2)
        assert world.service is not None
        world.service.kill()
        stage.kill(worker)
        time.sleep(DEAF_QUIET + 1.0)
        world.serve()


def _kill_again_and_again(stage: Stage) -> None:
    while not stage.done:
        worker = stage.world.worker()
        if stage.sending(worker):
            stage.linger(0.2)
        stage.kill(worker)


# -- troubled, but not killed ----------------------------------------------------------------------


def stop_and_continue(stage: Stage) -> None:
    """A worker is stopped for ten times the burial interval while another sends, then goes on."""
    stopped, other = stage.world.worker(), stage.world.worker()
    if stage.sending(stopped):
        stage.linger()
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


def restart_database(stage: Stage) -> None:
    """PostgreSQL is stopped without a goodbye while letters are on the wire."""
    if stage.databases is None or stage.databases.restart is None:
        raise NotHere("SQLite has no server to restart")
    worker = stage.world.worker()
    for _ in range(3):
        if not stage.sending(worker):
            break
        stage.linger()
        stage.databases.restart()
    assert worker.running, worker.log.read_text()
    worker.end()


def clock_jump(stage: Stage) -> None:
    """The worker's wall clock leaps two hours ahead and back, then two hours back and ahead, while it
    sends and has letters in doubt."""
    stage.world.sandbox.faults(reset_after=0.05, events={"late": [0.0, QUIET / 2]})
    worker = stage.world.worker(program=[sys.executable, "-m", "tests.crash.jumping_clock"])
    ahead, back = signal.SIGUSR1, signal.SIGUSR2
    for leap, return_leap in ((ahead, back), (back, ahead)):
        if not stage.sending(worker):
            break
        stage.linger()
        worker.signal(leap)
        time.sleep(QUIET)
        worker.signal(return_leap)
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
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(1 << 16)):
                pass
        time.sleep(1.0)
        filler.unlink()
    assert worker.running, worker.log.read_text()
    worker.end()
