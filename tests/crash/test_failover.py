"""A standby that lost commits is promoted: nothing goes twice, and a program that trusts it is found out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.crash.databases import databases_on
from tests.crash.faults import FAULTS
from tests.crash.judge import judge_world
from tests.crash.power_postgres import ServerFiles
from tests.crash.runs import House, play
from tests.crash.server_pair import ServerPair, server_pair
from tests.crash.world import Running, World, opened, until
from tests.postgres import PostgresServer

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="the pair is made from the wheel's server"),
]


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.pair], ids=lambda fault: fault.name)
def test_nothing_goes_out_twice_after_a_fail_over(fault: object, postgres_server: PostgresServer) -> None:
    """The ledger is halted, with and without the state directory, until somebody adopts the database."""
    (chosen,) = [each for each in FAULTS if each is fault]
    row = play(chosen, House(databases_on(postgres_server), seed=1))
    assert row.clean, row


@pytest.fixture
def pair(postgres_server: PostgresServer) -> Iterator[ServerPair]:
    with server_pair(ServerFiles(postgres_server)) as pair:
        yield pair


def test_a_promoted_standby_that_is_trusted_is_found_out(pair: ServerPair, tmp_path: Path) -> None:
    """Without fingerprints the letters whose claims were lost go out a second time."""
    with opened(World(tmp_path, pair.url, ['--faults={"slow": [5, 20]}'])) as world:
        world.prepare(150)
        first = trusting(world)
        until(partial(accepted, world, 20), 30, "letters are accepted")
        pair.cut_the_stream()
        until(partial(accepted, world, 60), 30, "letters are accepted that the standby does not know of")
        first.kill()
        pair.fail_over()
        world.environment["STATE_DIR"] = str(world.disk / "another-state")
        trusting(world)
        until(lambda: len(set(recipients(world))) == 150, 60, "everybody has a letter")
        assert judge_world(world).duplicates


def trusting(world: World) -> Running:
    return world.worker(program=[sys.executable, "-m", "tests.crash.broken", "any-database-is-the-same"])


def accepted(world: World, number: int) -> bool:
    return len(world.sandbox.acceptances()) >= number


def recipients(world: World) -> list[str]:
    return [recipient for row in world.sandbox.acceptances() for recipient in row["to"]]
