"""What a receiver notes about its listening, and what makes it begin anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.errors import Unavailable
from sendonce.flows.engine.listen import Listener

TOPIC = "arn:aws:sns:eu-central-1:123456789012:ses-events"


class Ear:
    """A listener on a store whose clock is moved by hand, and whose notes can be made to fail."""

    def __init__(self, *topics: str, durable: bool = False) -> None:
        self.now = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
        self.store = MemoryStore(lambda: self.now)
        self.listener = Listener(self, topics, durable=durable)  # type: ignore[arg-type]
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store.event_route, name)

    def attend(self, receiver: str, *, durable: bool, anew: bool = False) -> None:
        if self.fails:
            raise Unavailable("the disk is full")
        self.store.event_route.attend(receiver, durable=durable, anew=anew)

    def note(self) -> None:
        self.now += timedelta(seconds=5)
        self.listener.attend()

    @property
    def rows(self) -> list[tuple[float, bool]]:
        """For how many seconds each row lasts, and whether it was signed off."""
        return [
            ((row.seen - row.since).total_seconds(), row.left)
            for row in self.store.event_route.listening().receivers
        ]


@pytest.mark.parametrize("topics", [(), (TOPIC,), ("another",)])
def test_nothing_is_noted_before_an_allowed_topic_delivers(topics: tuple[str, ...]) -> None:
    ear = Ear(*topics)
    ear.note()
    if "another" in topics:
        ear.store.event_route.subscribed(TOPIC)
        ear.note()
    assert ear.rows == []


def test_one_message_is_enough_and_counts_at_once() -> None:
    ear = Ear(TOPIC)
    ear.listener.heard_from(TOPIC)
    ear.note()
    ear.note()
    ear.listener.leave()
    assert ear.rows == [(10, True)]


def test_a_note_that_fails_ends_the_stretch_of_a_push_but_not_of_a_queue() -> None:
    """In the queue the events wait meanwhile."""
    for durable, rows in ((False, [(5, False), (5, False)]), (True, [(20, False)])):
        ear = Ear(TOPIC, durable=durable)
        ear.store.event_route.subscribed(TOPIC)
        ear.note()
        ear.note()
        ear.fails = True
        with pytest.raises(Unavailable):
            ear.note()
        ear.fails = False
        ear.note()
        ear.note()
        assert ear.rows == rows


def test_who_broke_does_not_sign_off_as_if_nothing_were_lost() -> None:
    ear = Ear(TOPIC)
    ear.listener.heard_from(TOPIC)
    ear.note()
    ear.listener.broke()
    ear.listener.leave()
    assert ear.rows == [(5, False)]


def test_a_topic_that_ends_is_listened_to_no_more() -> None:
    """When it comes back, what came between may be lost."""
    for durable in (False, True):
        ear = Ear(TOPIC, durable=durable)
        ear.listener.heard_from(TOPIC)
        for _ in range(3):
            ear.note()
        ear.listener.ended(TOPIC)
        ear.note()
        assert len(ear.rows) == 1
        ear.listener.heard_from(TOPIC)
        ear.note()
        assert len(ear.rows) == 2
