"""The short form of ``make crash``: at least a dozen kills on each store, and the judge finds nothing."""

from __future__ import annotations

import os
from random import SystemRandom

from tests.crash.databases import Databases, databases_on, sqlite_databases
from tests.crash.faults import FAULTS, Fault
from tests.crash.runs import House, play
from tests.crash.scenes import (
    UNTIDY_EVENTS,
    Stage,
    kill_at_failpoints,
    kill_in_recovery,
    race,
    random_kill,
    two_regions,
)
from tests.postgres import PostgresServer

KILLS = 12
FEW = 4


def a_bit_of_all(stage: Stage) -> None:
    stage.world.sandbox.faults(events=UNTIDY_EVENTS)
    total = stage.wanted
    parts = ((random_kill, 0.25), (kill_in_recovery, 0.4), (race(2), 0.5), (kill_at_failpoints, 1.0))
    for scene, part in parts:
        stage.wanted = round(total * part)
        scene(stage)


def crash(databases: Databases) -> None:
    seed = int(os.environ.get("SEED", SystemRandom().randrange(2**31)))
    fault = Fault("a bit of all", a_bit_of_all, 1.0, people=16)
    row = play(fault, House(databases, seed), kills=KILLS)
    assert row.clean, f"seed {seed}: {row}"
    assert row.kills >= KILLS, f"seed {seed}: only {row.kills} kills landed"


def crash_between_regions(databases: Databases) -> None:
    seed = int(os.environ.get("SEED", SystemRandom().randrange(2**31)))
    (fault,) = [fault for fault in FAULTS if fault.scene is two_regions]
    row = play(fault, House(databases, seed), kills=FEW)
    assert row.clean, f"seed {seed}: {row}"


def test_a_dozen_kills_on_sqlite() -> None:
    with sqlite_databases() as databases:
        crash(databases)


def test_a_dozen_kills_on_postgres(postgres_server: PostgresServer) -> None:
    crash(databases_on(postgres_server))


def test_kills_between_two_regions_on_sqlite() -> None:
    """A letter that one region may have taken never leaves through the other."""
    with sqlite_databases() as databases:
        crash_between_regions(databases)


def test_kills_between_two_regions_on_postgres(postgres_server: PostgresServer) -> None:
    crash_between_regions(databases_on(postgres_server))
