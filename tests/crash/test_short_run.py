"""The short form of ``make crash``: at least twenty kills on each store, and the judge finds nothing."""

from __future__ import annotations

import os
from random import Random, SystemRandom

import pytest

from tests.crash.databases import Databases, databases_on
from tests.crash.runs import play
from tests.crash.scenes import UNTIDY_EVENTS, Fault, Stage, kill_at_failpoints, kill_in_recovery, random_kill
from tests.postgres import PostgresServer

KILLS = 20


def a_bit_of_all(stage: Stage) -> None:
    stage.world.sandbox.faults(events=UNTIDY_EVENTS)
    total = stage.wanted
    for scene, part in ((random_kill, 0.4), (kill_in_recovery, 0.5), (kill_at_failpoints, 1.0)):
        stage.wanted = round(total * part)
        scene(stage)


def crash(databases: Databases) -> None:
    seed = int(os.environ.get("SEED", SystemRandom().randrange(2**31)))
    row = play(Fault("a bit of all", a_bit_of_all, 1.0), KILLS, databases, Random(seed))
    assert row.clean, f"seed {seed}: {row}"
    assert row.kills >= KILLS, f"seed {seed}: only {row.kills} kills landed"


@pytest.mark.xdist_group("crash-sqlite")
def test_twenty_kills_on_sqlite() -> None:
    crash(Databases(lambda directory: f"sqlite:///{directory}/disk/sendonce.db", None))


@pytest.mark.xdist_group("crash-postgres")
def test_twenty_kills_on_postgres(postgres_server: PostgresServer) -> None:
    crash(databases_on(postgres_server))
