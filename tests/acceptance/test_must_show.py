"""What the project promises in its first lines, through the command line and in real processes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.crash.judge import judge_world
from tests.crash.runs import most_in_doubt
from tests.crash.scenes import EVERYDAY, Stage
from tests.crash.world import CONNECTIONS, World, opened, until
from tests.postgres import quick_folder

FAULTS = {
    "throttle": 0.01,
    "error_before": 0.01,
    "reset_after": 0.01,
    "truncate": 0.01,
    "error_after": 0.01,
    "events": {"duplicate": 0.1, "shuffle": True, "late": [0.0, 1.0]},
}


@pytest.fixture
def directory() -> Iterator[Path]:
    folder = quick_folder("sendonce-must-show-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def dice(record_property: pytest.FixtureRequest) -> Random:
    seed = int(os.environ.get("SEED", SystemRandom().randrange(2**31)))
    print(f"seed {seed}")  # noqa: T201 (shown when the test fails: SEED=… plays it again)
    return Random(seed)


@pytest.mark.parametrize(("people", "kills"), [(600, 10), pytest.param(5_000, 10, marks=pytest.mark.long)])
def test_ten_kills_in_mid_send_and_everybody_is_written_to_once(
    directory: Path, dice: Random, people: int, kills: int
) -> None:
    flags = [f"--seed={dice.randrange(2**31)}"]
    with opened(World(directory, f"sqlite:///{directory}/disk/sendonce.db", flags)) as world:
        world.prepare(people)
        world.serve()
        world.sandbox.faults(**{**EVERYDAY, **FAULTS})
        stage = Stage(world, dice, kills)
        while not stage.done:
            worker = world.worker()
            if stage.sending(worker):
                stage.linger(people / 10_000)
            stage.kill(worker)
        assert stage.kills == kills
        world.finish()
        addresses = [row["to"][0] for row in world.sandbox.acceptances()]
        assert len(addresses) == len(set(addresses)) == people
        assert world.ask("jobs", "in-doubt") == []
        assert judge_world(world).clean
        assert most_in_doubt(world) <= CONNECTIONS


@pytest.mark.parametrize("people", [800, pytest.param(20_000, marks=pytest.mark.long)])
def test_two_workers_share_a_mailout_and_one_is_killed_on_the_way(
    directory: Path, dice: Random, postgres_url: str, people: int
) -> None:
    flags = [f"--seed={dice.randrange(2**31)}"]
    with opened(World(directory, postgres_url, flags)) as world:
        world.plan(people)
        world.serve()
        world.sandbox.faults(**EVERYDAY)
        world.run("mailout", "pause", world.mailout)
        workers = [world.worker("--name", name) for name in ("one", "two")]
        until(lambda: all(world.registered(worker) for worker in workers), 30, "both workers have begun")
        world.run("mailout", "resume", world.mailout)
        until(lambda: world.eye.count("sent") >= people * dice.uniform(0.55, 0.65), 300, "half is sent")
        workers[0].kill()
        workers[0] = world.worker("--name", "one")
        until(lambda: world.eye.count("scheduled") + world.eye.count("sending") == 0, 300, "all is sent")
        world.finish()
        assert judge_world(world).clean
        shares = sent_by(world)
        assert set(shares) == {"one", "two"}
        assert min(shares.values()) >= people / 8, shares


def sent_by(world: World) -> dict[str, int]:
    rows = world.eye.rows(
        "SELECT w.name, count(*) FROM message_jobs j JOIN workers w ON w.id = j.worker_id "
        "WHERE j.state = 'sent' AND w.name IN ('one', 'two') GROUP BY w.name"
    )
    return {row[0]: row[1] for row in rows}
