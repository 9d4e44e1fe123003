"""Clocks that leap."""

from __future__ import annotations

import http.client
import signal
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from tests.adapters.worker.stage import JUMPING, accepted
from tests.crash.world import World, opened, until


def test_nothing_is_claimed_while_the_wall_clock_has_leapt(world: World) -> None:
    world.plan(400)
    worker = world.worker(program=JUMPING)
    until(lambda: world.eye.count("sent") > 20, 20, "letters leave")
    worker.signal(signal.SIGUSR1)
    until(lambda: "the clock jumped" in worker.log.read_text(), 20, "the leap is noticed")
    until(lambda: world.eye.count("sending") == 0, 20, "what was claimed has left")
    held = len(accepted(world))
    until(
        lambda: worker.log.read_text().count("the clock jumped") >= 3, 20, "the second clock was asked thrice"
    )
    assert len(accepted(world)) == held
    worker.signal(signal.SIGUSR2)
    until(lambda: world.eye.count("sent") == 400, 30, "it goes on when the clock is right again")
    assert worker.end() == 0


def test_no_mailout_starts_by_a_clock_that_has_leapt(world: World) -> None:
    """Its time has not come. It is neither started nor refused, and keeps its time."""
    world.plan(10)
    letter = world.directory / "later.md"
    letter.write_text("---\nsubject: Later\n---\nHello again\n")
    held = world.ask("mailout", "create", str(letter))["id"]
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    world.ask("mailout", "send", held, "--at", in_an_hour.strftime("%Y-%m-%dT%H:%MZ"))
    worker = world.worker(program=JUMPING)
    until(lambda: world.eye.count("sent") == 10, 20, "letters leave")
    worker.signal(signal.SIGUSR1)
    until(lambda: worker.log.read_text().count("the clock jumped") >= 2, 30, "the leap is noticed")
    told = world.ask("mailout", "status", held)
    assert (told["status"], told["scheduled"]) == ("ready", True)
    assert worker.end() == 0


def test_no_tick_starts_a_mailout_by_a_clock_that_has_leapt_since_the_last_one(world: World) -> None:
    """Each tick is a worker of its own, but the service has seen the clock before."""
    world.plan(3)
    letter = world.directory / "later.md"
    letter.write_text("---\nsubject: Later\n---\nHello again\n")
    held = world.ask("mailout", "create", str(letter))["id"]
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    world.ask("mailout", "send", held, "--at", in_an_hour.strftime("%Y-%m-%dT%H:%MZ"))
    world.service = service = world.start("serve", "--no-worker", program=JUMPING)
    until(world.answers, 20, "the service answers")

    def tick() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=30)
        with closing(connection):
            connection.request("GET", "/tick?seconds=3", headers={"Authorization": "Bearer crash-tests"})
            assert connection.getresponse().status == 200

    tick()
    assert world.eye.count("sent") == 3
    service.signal(signal.SIGUSR1)
    tick()
    told = world.ask("mailout", "status", held)
    assert (told["status"], told["scheduled"]) == ("ready", True)
    assert "the clock jumped" in service.log.read_text()
    assert service.end() == 0


def test_nothing_is_claimed_while_the_database_servers_clock_has_leapt(
    tmp_path: Path, postgres_url: str
) -> None:
    """The server's clock decides what is due, and may leap while the worker's own does not."""
    slow = '--faults={"slow": [5, 10]}'
    with opened(World(tmp_path, postgres_url, [slow])) as world:
        for statement in LEAPING_SERVER:
            world.eye.change(statement.format(database=sa.make_url(postgres_url).database))
        world.plan(400)
        worker = world.worker()
        until(lambda: world.eye.count("sent") > 20, 20, "letters leave")
        world.eye.change("UPDATE leap SET ahead = interval '2 hours'")
        until(lambda: "the clock jumped" in worker.log.read_text(), 20, "the leap is noticed")
        until(lambda: world.eye.count("sending") == 0, 20, "what was claimed has left")
        held = len(accepted(world))
        until(lambda: worker.log.read_text().count("the clock jumped") >= 3, 20, "it was looked at thrice")
        assert 20 < len(accepted(world)) == held < 400
        world.eye.change("UPDATE leap SET ahead = interval '0'")
        until(lambda: world.eye.count("sent") == 400, 30, "it goes on when the clock is right again")
        assert worker.end() == 0
        assert len(set(accepted(world))) == 400


# pg_catalog comes first in every search path that does not name it.
LEAPING_SERVER = (
    "CREATE TABLE leap (ahead interval NOT NULL)",
    "INSERT INTO leap VALUES (interval '0')",
    "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
    "'SELECT pg_catalog.clock_timestamp() + ahead FROM public.leap'",
    "ALTER DATABASE {database} SET search_path = public, pg_catalog",
)
