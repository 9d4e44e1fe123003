"""A sender on SES whose region is in trouble: its letters leave through its second region, each once.

Real processes: the sandbox plays two regions with an address each, and is told what goes wrong in which.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.stores.sql.store import open_store
from tests.acceptance.test_held_sender import Desk, world
from tests.acceptance.test_two_senders import books, dispatch, states, told_by_doctor
from tests.crash.world import SandboxSes

HOME, SECOND = "us-east-1", "eu-west-1"
MARKS = {"0100": HOME, "0102": SECOND}
"""How the sandbox begins the ids of a region's letters."""
OWN, ADDED = "news@example.com", "added@example.com"
LETTERS = 30


class TwoRegions:
    def __init__(self, desk: Desk, sandbox: SandboxSes) -> None:
        self.desk = desk
        self.sandbox = sandbox
        self.ill = sandbox.faults

    def ill_there(self, **wishes: Any) -> None:
        url = self.sandbox.environment["SES_SECOND_ENDPOINT_URL"]
        request = urllib.request.Request(f"{url}/sandbox/faults", json.dumps(wishes).encode())
        with urllib.request.urlopen(request) as reply:
            assert reply.status == 200

    def send(self, count: int = LETTERS, sender_id: str = "", **settings: str) -> str:
        """Letters of a sender, and a worker that sends what it can."""
        planned = dispatch(self.desk, sender_id, count)
        self.desk.run("worker", "--until-idle", **settings)
        return planned

    def sent_by(self) -> dict[str, int]:
        """How many letters each region took. No letter was taken twice."""
        rows = self.sandbox.acceptances()
        assert len({row["job"] for row in rows}) == len(rows)
        regions = [MARKS[row["message_id"][:4]] for row in rows]
        return {region: regions.count(region) for region in (HOME, SECOND)}

    def audited(self) -> list[tuple[str, str]]:
        with closing(open_store(self.desk.environment["DATABASE_URL"])) as store:
            return [
                (entry.action, entry.actor)
                for entry in store.audit_log.all()
                if entry.action in ("fail_over", "fail_back", "release_sender")
            ]


on_every_store = pytest.mark.parametrize("regions", ["sqlite_url", "postgres_url"], indirect=True)


@pytest.fixture
def regions(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TwoRegions]:
    """On SQLite, unless a test says otherwise."""
    desk = Desk(tmp_path, request.getfixturevalue(getattr(request, "param", "sqlite_url")))
    with world(desk, f"--second-region={SECOND}") as sandbox:
        yield TwoRegions(desk, sandbox)


@on_every_store
def test_a_paused_account_sends_through_the_second_region_until_a_person_calls_it_back(
    regions: TwoRegions,
) -> None:
    """No try is used up, everybody sees where the sender is, and new processes know it from the store."""
    desk = regions.desk
    regions.ill(paused=1.0)
    first = regions.send()
    assert regions.sent_by() == {HOME: 0, SECOND: LETTERS}
    assert books(desk, first)["sent"] == LETTERS
    shown = states(desk)[OWN]
    assert (shown["state"], shown["region"]) == ("ok", SECOND)
    assert "SendingPaused" in shown["reason"]
    assert any("second region eu-west-1" in what for what in told_by_doctor(desk))
    assert regions.audited() == [("fail_over", "the engine")]
    regions.ill(paused=0.0)
    regions.send()
    assert regions.sent_by() == {HOME: 0, SECOND: 2 * LETTERS}
    assert "leave through us-east-1 again" in desk.run("sender", "fail-back").stdout
    regions.send()
    assert regions.sent_by() == {HOME: LETTERS, SECOND: 2 * LETTERS}
    assert states(desk)[OWN]["region"] == HOME
    assert "in its own region already" in desk.run("sender", "fail-back", code=3).stderr


def test_after_the_quiet_time_one_letter_is_tried_at_home_and_brings_the_sender_back(
    regions: TwoRegions,
) -> None:
    """Refused, it waits and goes another way; accepted, all others follow it."""
    regions.ill(paused=1.0)
    regions.send(SES_FAIL_BACK_SECONDS="0.001")
    assert regions.sent_by() == {HOME: 0, SECOND: LETTERS}
    regions.ill(paused=0.0)
    regions.desk.run("sender", "fail-over", "--hours=0")
    for _ in range(10):  # both regions claim at once, and a few letters may all be taken by the second
        regions.send()
        if regions.sent_by()[HOME]:
            break
    assert regions.sent_by()[HOME] >= 1
    assert states(regions.desk)[OWN]["region"] == HOME
    assert ("fail_back", "the engine") in regions.audited()


@on_every_store
def test_letters_that_met_an_error_stay_in_doubt_where_they_are_and_the_rest_moves(
    regions: TwoRegions,
) -> None:
    """Five answers 500 in a row move the sender; nobody sends their letters again in the other region."""
    regions.ill(error_after=1.0)
    planned = regions.send()
    taken = regions.sent_by()
    assert 5 <= taken[HOME] <= 5 + 2 * 4
    assert taken[HOME] + taken[SECOND] == LETTERS
    assert books(regions.desk, planned)["sent"] == taken[SECOND]
    with closing(open_store(regions.desk.environment["DATABASE_URL"])) as store:
        routes = {doubt.route for doubt in store.ledger.doubts(LETTERS)}
    assert routes == {f"ses/{HOME}/sandbox"}


def test_an_added_sender_moves_alone(regions: TwoRegions) -> None:
    """Each sender has its own state; a hold of a person keeps it from sending in either region."""
    desk = regions.desk
    way = (f"--region={HOME}", f"--second-region={SECOND}", "--configuration-set=sandbox")
    added = desk.json("sender", "add", ADDED, *way)["id"]
    desk.run("sender", "fail-over", ADDED, "--reason", "a drill")
    regions.send(sender_id=added)
    regions.send()
    assert regions.sent_by() == {HOME: LETTERS, SECOND: LETTERS}
    assert states(desk)[ADDED]["region"] == SECOND
    desk.run("sender", "hold", ADDED)
    waiting = regions.send(sender_id=added)
    assert books(desk, waiting)["scheduled"] == LETTERS
    assert states(desk)[ADDED]["state"] == "blocked"


def test_where_both_regions_refuse_the_letters_wait(regions: TwoRegions) -> None:
    regions.ill(paused=1.0)
    regions.ill_there(paused=1.0)
    planned = regions.send()
    assert regions.sent_by() == {HOME: 0, SECOND: 0}
    assert books(regions.desk, planned)["scheduled"] == LETTERS
    shown = states(regions.desk)[OWN]
    assert (shown["state"], shown["region"]) == ("held", SECOND)


def test_a_rehearsal_never_leaves_through_the_second_region(regions: TwoRegions) -> None:
    """A stand-in for one region only is refused: the other would be the real one."""
    told = regions.desk.run("worker", "--until-idle", code=2, SES_SECOND_ENDPOINT_URL="").stderr
    assert "SES_SECOND_ENDPOINT_URL is not set" in told
