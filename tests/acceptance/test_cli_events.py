"""sendonce events and jobs in-doubt: what the provider told, what it did not, and what a person can do."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from sendonce.adapters.stores.sql.store import open_store
from sendonce.domain.engine.events import EventKind, UnreadableEvent
from tests.acceptance.test_threats_people import Desk
from tests.conformance.stage import DOUBTED, Stage, event_of


def test_events_are_listed_and_those_that_cannot_be_read_word_for_word(
    tmp_path: Path, sqlite_url: str
) -> None:
    desk = Desk(tmp_path, sqlite_url)
    with closing(open_store(sqlite_url)) as store:
        stage = Stage(store)
        stage.running(2)
        first, second = stage.claim().claimed
        stage.event(first)
        stage.event(second, EventKind.BOUNCE, reason="no such user")
        stage.record(event_of(None, EventKind.DELIVERED))
        store.events.keep_unreadable(UnreadableEvent("sns-9", "arn:a-topic", "no JSON", b"\x00{\xff"))
    shown = json.loads(desk.run("events", "list", "--json"))
    assert [event["kind"] for event in shown] == ["delivered", "bounce", "sent"]
    (own,) = json.loads(desk.run("events", "list", "--job", second.id, "--json"))
    assert (own["job_id"], own["reason"]) == (second.id, "no such user")
    (kept,) = json.loads(desk.run("events", "list", "--unreadable", "--limit", "5", "--json"))
    assert (kept["source"], kept["why"], kept["raw"]) == ("arn:a-topic", "no JSON", "\x00{\\xff")
    assert "arn:a-topic" in desk.run("events", "list", "--unreadable")
    desk.environment["UNSUBSCRIBE_SECRET"] = "long enough to be a secret"
    assert "1 event of your topics could not be read" in desk.run("doctor")


def test_each_doubt_says_what_it_waits_for_and_what_a_person_can_do(tmp_path: Path, sqlite_url: str) -> None:
    """Never listened to, its sender not proven dead, a transport without events: three reasons."""
    desk = Desk(tmp_path, sqlite_url)
    with closing(open_store(sqlite_url)) as store:
        stage = Stage(store)
        mailout = stage.running(3)
        unheard, undead = stage.in_doubt(), stage.in_doubt(dead=False)
        by_smtp = stage.claim_one(stage.worker("smtp"))
        stage.settle(by_smtp, DOUBTED)
    shown = {job["id"]: job for job in json.loads(desk.run("jobs", "in-doubt", "--json"))}
    assert [job["parked"] for job in shown.values()] == [True] * 3
    assert "smtp never tells" in shown[by_smtp.id]["why"]
    assert "Nothing proves that nobody else is sending it" in shown[undead.id]["why"]
    assert "without a break" in shown[unheard.id]["why"]
    for_people = desk.run("jobs", "in-doubt", "--mailout", mailout)
    assert "may be lost" in for_people
    assert "sendonce jobs resolve not-sent ID…" in for_people
    status = json.loads(desk.run("mailout", "status", mailout, "--json"))
    assert [(each["standing"], each["jobs"]) for each in status["doubts"]] == [("parked", 1)] * 3
