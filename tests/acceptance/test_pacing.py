"""Pacing, as the receiver sees it: from the sandbox's own log of acceptances."""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.crash.world import World, opened, until
from tests.postgres import quick_folder


@pytest.fixture
def directory() -> Iterator[Path]:
    folder = quick_folder("sendonce-pacing-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def moments(world: World) -> list[float]:
    return sorted(row["t"] for row in world.sandbox.acceptances())


def fullest_window(times: Sequence[float]) -> int:
    """The most letters accepted in any one second, that second's end left out."""
    return max(bisect_left(times, start + 1.0) - place for place, start in enumerate(times))


def test_the_window_is_counted_right() -> None:
    assert fullest_window([0.0, 0.5, 0.99, 1.0, 1.2]) == 4
    assert fullest_window([0.0, 1.0, 2.0]) == 1


def paced(directory: Path, url: str, rate: int, **settings: str) -> World:
    # The sandbox allows far more, so that it is not the one to keep the rate.
    connections = "8" if rate < 1000 else "16"
    changes = {"RATE_LIMIT_PER_SEC": str(rate), "CONCURRENCY": connections, **settings}
    return World(directory, url, **changes)


@pytest.mark.parametrize(
    ("rate", "seconds", "share"),
    [
        # A machine that runs other tests beside may not get there; the limit holds all the same.
        (100, 4, 0.5),
        (1000, 3, 0.2),
        *(pytest.param(rate, 30, 0.99, marks=pytest.mark.long) for rate in (6, 14, 100)),
        # A permit comes back a second after the reply, and the sandbox takes some 10 ms for it at this rate.
        pytest.param(1000, 30, 0.97, marks=pytest.mark.long),
    ],
)
def test_one_process_keeps_the_rate_and_uses_it(
    directory: Path, rate: int, seconds: int, share: float
) -> None:
    with opened(paced(directory, f"sqlite:///{directory}/disk/sendonce.db", rate)) as world:
        world.plan(rate * seconds)
        worker = world.worker()
        until(lambda: world.eye.count("sent") == rate * seconds, 4 * seconds + 20, "all is sent")
        assert worker.end() == 0
        times = moments(world)
        assert fullest_window(times) <= rate
        assert (len(times) - 1) / (times[-1] - times[0]) >= share * rate


def test_a_worker_tells_the_rate_that_it_measures(directory: Path) -> None:
    """``mailout status`` shows how fast letters really leave; the worker alone knows."""
    with opened(paced(directory, f"sqlite:///{directory}/disk/sendonce.db", 20)) as world:
        world.plan(600)
        worker = world.worker()
        told = until(lambda: world.ask("mailout", "status", world.mailout)["rate"], 30, "a rate is told")
        assert worker.end() == 0
        # It is measured over the five seconds between two signs of life.
        assert told <= 25


def has_sent(world: World, number: int) -> bool:
    return world.eye.count("sent") >= number


@pytest.mark.long
def test_three_processes_share_the_rate(directory: Path, postgres_url: str) -> None:
    with opened(paced(directory, postgres_url, 100)) as world:
        world.plan(3_000)
        workers = [world.worker() for _ in range(3)]
        until(lambda: world.eye.count("sent") == 3_000, 120, "all is sent")
        assert [worker.end() for worker in workers] == [0, 0, 0]
        times = moments(world)
        assert fullest_window(times) <= 100
        assert (len(times) - 1) / (times[-1] - times[0]) >= 90


@pytest.mark.long
def test_killing_and_restarting_workers_never_exceeds_the_rate(directory: Path, postgres_url: str) -> None:
    dice = Random(20)
    with opened(paced(directory, postgres_url, 100)) as world:
        world.plan(2_000)
        workers = [world.worker() for _ in range(3)]
        for sent in range(100, 1_900, 100):
            until(partial(has_sent, world, sent), 60, "letters leave")
            place = dice.randrange(3)
            workers[place].kill()
            workers[place] = world.worker()
        assert fullest_window(moments(world)) <= 100
