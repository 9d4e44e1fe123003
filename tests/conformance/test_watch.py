"""The watch: what is wrong is told once, and its end, on every database; gauges are read without history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.schema import gauge_readings, job_states
from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.alarms import AlarmLimits
from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.gauges import MOST_TENANTS, OTHERS, fold_tenants, per_hour, rates_between
from sendonce.domain.engine.jobs import Books
from sendonce.domain.engine.senders import HoldOrder
from sendonce.domain.engine.workers import MISSING_AFTER
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.flows.engine.alert import TOPIC
from sendonce.flows.engine.keep_watch import MOVES_WITHIN, keep_watch, sound_alarms
from tests.conformance.stage import ACCEPTED, DEFERRED, Stage

OFF = AlarmLimits(dead_letters=0, queue_age=None, event_silence=None)
NO_TIME = timedelta(microseconds=1)


class Tower:
    """A stage with somebody who watches it."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.stage = Stage(store)

    def look(self, limits: AlarmLimits = OFF) -> list[str]:
        """What people are told after it."""
        sound_alarms(self.store, limits)
        waiting = self.store.outbox.due(TOPIC, 100)
        for entry_id, _ in waiting:
            self.store.outbox.done(entry_id)
        return [body["text"] for _, body in waiting]

    def an_hour_later(self) -> None:
        """As far as leases know."""
        with self.store.database.writing() as tx:
            tx.exec_driver_sql("DELETE FROM leases")


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def tower(request: pytest.FixtureRequest) -> Iterator[Tower]:
    store = open_store(request.getfixturevalue(request.param))
    yield Tower(store)
    store.close()


def test_a_held_sender_is_told_once_and_its_end(tower: Tower) -> None:
    hold = tower.store.sender_holds.hold(
        "smtp/host:587/a@b.example", HoldOrder("535", "wrong password", 60.0)
    )
    assert tower.look() == ["The sender a@b.example is held: wrong password"]
    assert tower.look() == []
    tower.an_hour_later()
    assert tower.look() == [], "it is no news that it still stands"
    assert tower.store.sender_holds.end(hold)
    assert tower.look() == ["It is over: The sender a@b.example is held: wrong password"]
    assert tower.look() == []


def test_what_comes_and_goes_is_told_once_an_hour(tower: Tower) -> None:
    """Nobody is told of the end of what they were not told of. What still stands after the hour is told."""
    order = HoldOrder("421", "too many connections", 60.0)
    key = "smtp/host:587/a@b.example"
    for told in (2, 0, 0):
        hold = tower.store.sender_holds.hold(key, order)
        first = tower.look()
        tower.store.sender_holds.end(hold)
        assert len(first + tower.look()) == told
    tower.store.sender_holds.hold(key, order)
    assert tower.look() == []
    tower.an_hour_later()
    assert len(tower.look()) == 1


def test_a_hold_by_hand_is_no_news(tower: Tower) -> None:
    tower.store.sender_holds.hold_by_hand("smtp/host:587/a@b.example", "the invoice is open", None, "me")
    assert tower.look() == []


def test_letters_that_die_are_an_alarm_from_a_number_on(tower: Tower) -> None:
    """Those that were dead when the day began are not counted: somebody has seen them."""
    tower.stage.running(3)
    limits = replace(OFF, dead_letters=2)
    die(tower)
    tower.store.gauge_log.take()
    assert tower.look(limits) == []
    die(tower)
    assert tower.look(limits) == []
    die(tower)
    assert tower.look(limits) == [
        "2 letters are dead since yesterday: 'sendonce jobs dead' groups them by cause."
    ]


def die(tower: Tower) -> None:
    job = tower.stage.claim_one()
    tower.stage.settle(job, DEFERRED, exhausted=True)


def test_a_queue_that_waits_is_an_alarm(tower: Tower) -> None:
    limits = replace(OFF, queue_age=NO_TIME)
    assert tower.look(limits) == []
    tower.stage.running(1)
    (told,) = tower.look(limits)
    assert told.startswith("A letter has been due for 0 min, and none has left lately; 1 wait,")
    assert tower.look(replace(OFF, queue_age=timedelta(hours=1))) == [f"It is over: {told}"]


def test_a_long_mailout_that_moves_is_no_alarm(tower: Tower) -> None:
    """However long its last letter has been due, while others end every few minutes."""
    limits = replace(OFF, queue_age=NO_TIME)
    tower.stage.running(2)
    tower.store.gauge_log.take()
    a_while_ago(tower)
    assert len(tower.look(limits)) == 1, "nothing left since"
    tower.stage.settle(tower.stage.claim_one(), ACCEPTED)
    assert len(tower.look(limits)) == 1, "it is over"
    tower.store.gauge_log.take()
    a_while_ago(tower)
    tower.an_hour_later()
    assert len(tower.look(limits)) == 1, "it stands still again"


def a_while_ago(tower: Tower) -> None:
    """When the newest gauges were read."""
    newest = tower.store.gauge_log.newest()
    assert newest is not None
    before = newest.taken_at - MOVES_WITHIN
    change = sa.update(gauge_readings).where(gauge_readings.c.taken_at == newest.taken_at)
    with tower.store.database.writing() as tx:
        tx.execute(sa.delete(gauge_readings).where(gauge_readings.c.taken_at < newest.taken_at))
        tx.execute(change.values(taken_at=before))


def test_silence_after_letters_through_ses_is_an_alarm(tower: Tower) -> None:
    limits = replace(OFF, event_silence=timedelta(hours=1))
    tower.stage.running(2)
    job = tower.stage.claim_one(tower.stage.worker("ses"))
    tower.stage.settle(job, ACCEPTED)
    assert tower.look(limits) == [], "its event still has time"
    left_long_ago(tower)
    (told,) = tower.look(limits)
    assert told.startswith("1 or more letters left through SES, and no event has come for 1 h 0 min")
    tower.stage.event(job, EventKind.BOUNCE)
    assert tower.look(limits) == [f"It is over: {told}"]


def test_letters_over_smtp_have_no_events(tower: Tower) -> None:
    tower.stage.running(1)
    tower.stage.settle(tower.stage.claim_one(tower.stage.worker("smtp")), ACCEPTED)
    left_long_ago(tower)
    assert tower.look(replace(OFF, event_silence=timedelta(hours=1))) == []


def left_long_ago(tower: Tower) -> None:
    """Ninety minutes: in the hour before the silent one."""
    then = tower.store.ledger.now() - timedelta(minutes=90)
    with tower.store.database.writing() as tx:
        tx.execute(job_states.update().where(job_states.c.state == "sent").values(claimed_at=then))


def test_a_worker_that_is_gone_is_named(tower: Tower, monkeypatch: pytest.MonkeyPatch) -> None:
    worker_id = tower.stage.worker()
    assert tower.look() == []
    now = tower.store.gauge_log.read()
    later = replace(now, taken_at=now.taken_at + MISSING_AFTER + timedelta(seconds=1))
    with monkeypatch.context() as patch:
        patch.setattr(type(tower.store.gauge_log), "read", lambda _: later)
        (told,) = tower.look()
    assert told.startswith("The worker w on host has not been heard of since ")
    assert told.endswith(f"sendonce workers bury {worker_id} --i-know-it-is-dead")
    assert tower.look() == [f"It is over: {told}"]


def test_many_processes_read_the_gauges_once(tower: Tower) -> None:
    for _ in range(3):
        keep_watch(tower.store, OFF)
    assert len(tower.store.gauge_log.last_day()) == 1


def test_gauges_tell_what_the_books_tell(tower: Tower) -> None:
    mailout = tower.stage.running(3)
    tower.stage.settle(tower.stage.claim_one(), ACCEPTED)
    taken = tower.store.gauge_log.take()
    books = tower.store.jobs.books(mailout)
    assert (taken.books, taken.tenants) == (books, {DEFAULT_TENANT: books})
    assert tower.store.gauge_log.newest() == taken
    assert tower.store.gauge_log.last_day() == [taken]


# -- what follows from gauges --------------------------------------------------------------------


def test_rates_are_those_of_the_time_between() -> None:
    before = Books(sent=1000, delivered=900, bounced=100)
    rates = rates_between(before, Books(sent=1200, delivered=1090, bounced=104, complained=1))
    assert (rates.accepted, rates.delivery, rates.bounce, rates.complaint) == (200, 0.95, 0.02, 0.005)
    assert rates_between(before, before).delivery is None


def test_letters_per_hour(tower: Tower) -> None:
    now = tower.store.gauge_log.read()
    hours = [(30, 0), (3, 10), (2, 40), (1, 45)]
    readings = [
        replace(now, taken_at=now.taken_at - timedelta(hours=ago), books=Books(sent=sent))
        for ago, sent in hours
    ]
    assert per_hour(readings, "sent", now.taken_at, 4) == [10, 30, 5, 0]
    assert per_hour([], "sent", now.taken_at, 2) == [0, 0]


def test_tenants_beyond_fifty_are_shown_together() -> None:
    many = {f"tenant-{n}": Books(planned=1000 - n, sent=1) for n in range(MOST_TENANTS + 7)}
    shown = fold_tenants(many)
    assert len(shown) == MOST_TENANTS + 1
    assert shown[OTHERS].sent == 7
