"""sendonce status, as a person and a program see it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.alarms import Trouble
from sendonce.domain.engine.senders import HoldOrder
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.engine.status import sparkline
from tests.acceptance.test_held_sender import Desk
from tests.conformance.stage import ACCEPTED, REFUSED, Stage


@pytest.fixture
def desk(tmp_path: Path, sqlite_url: str) -> Desk:
    desk = Desk(tmp_path, sqlite_url)
    with closing(open_store(desk.environment["DATABASE_URL"])) as store:
        stage = Stage(store)
        stage.running(3)
        store.gauge_log.take()
        for outcome in (ACCEPTED, REFUSED):
            stage.settle(stage.claim_one(), outcome)
        store.gauge_log.take()
        store.alarms.stand(Trouble("queue age", "A letter has been due for 3 h."))
        store.sender_holds.hold("smtp/host:587/a@b.example", HoldOrder("535", "wrong password", 60.0))
        store.mailbox_log.note_trouble("a@b.example@host:993", "it is away")
    return desk


def test_programs_get_everything(desk: Desk) -> None:
    shown = desk.json("status")
    assert (shown["counts"]["sent"], shown["counts"]["failed"]) == (1, 1)
    assert shown["queue"]["depth"] == 1
    assert shown["last_day"]["accepted"] == 1
    assert shown["last_day"]["per_hour"]["sent"] == [0] * 23 + [1]
    assert [alarm["about"] for alarm in shown["alarms"]] == ["queue age"]
    assert [hold["code"] for hold in shown["held_senders"]] == ["535"]
    assert [each["trouble"] for each in shown["mailboxes"]] == ["it is away"]
    assert shown["tenants"][DEFAULT_TENANT]["failed"] == 1


def test_people_get_a_screen(desk: Desk) -> None:
    said = desk.run("status").stdout
    assert said.startswith("ALARM since ")
    for words in (
        "1 letter scheduled, 0 on the way",
        "1 letter accepted; delivered unknown, bounced 0.0%",
        "a@b.example: wrong password",
        "never read; it is away",
        "sent        0 0 0",
    ):
        assert words in said


def test_charts_show_what_is_not_nothing() -> None:
    assert sparkline([0, 1, 500, 1000]) == " ▂▅█"
    assert sparkline([0, 0]) == "  "
