"""Doubt over SMTP, settled by the folder of sent letters: found is taken, and absence needs neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from sendonce.domain.engine.jobs import ClaimedJob, JobState
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.flows.engine.search_sent import SearchRules, SentSearcher
from sendonce.ports.store import Store
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import ACCEPTED, DOUBTED, Stage

QUIET = timedelta(minutes=15)
HERE, ELSEWHERE = "smtp/mail.example.com:587", "smtp/other.example.com:587"


class Scene:
    """A sender's letters, one of them in doubt, and what its provider filed."""

    name = "news@imap.example.com"

    def __init__(self, store: Store) -> None:
        self.store = store
        self.stage = Stage(store)
        self.stage.running(8)
        self.filed: set[str] = set()
        self.looks = 0

    # -- the provider --------------------------------------------------------------------------

    @contextmanager
    def opened_sent(self) -> Iterator[Scene]:
        self.looks += 1
        yield self

    def holds(self, job_id: str) -> bool:
        return job_id in self.filed

    # -- what happens --------------------------------------------------------------------------

    def letter(self, *, filed: bool = True, route: str = HERE) -> ClaimedJob:
        job = self.stage.claim_one(self.stage.worker("smtp", route))
        self.stage.settle(job, ACCEPTED)
        if filed:
            self.filed.add(job.id)
        pass_time(self.store, 1)
        return job

    def doubt(self) -> ClaimedJob:
        job = self.stage.claim_one(self.stage.worker("smtp", HERE))
        self.stage.settle(job, DOUBTED, death_proof="the worker itself says so")
        pass_time(self.store, 1)
        return job

    def search(self, sender_id: str = OWN_SENDER) -> int:
        rules = SearchRules(sender_id, QUIET, timedelta(0))
        return asyncio.run(SentSearcher(self, self.store, rules).run())

    def after_the_quiet_time(self) -> int:
        pass_time(self.store, QUIET.total_seconds())
        return self.search()


@pytest.fixture
def scene(store: Store) -> Scene:
    return Scene(store)


def test_a_letter_that_is_there_was_taken(scene: Scene) -> None:
    job = scene.doubt()
    scene.filed.add(job.id)
    assert scene.search() == 0
    assert scene.stage.state(job) == JobState.SENT
    assert scene.stage.job(job).send_event_at is not None


def test_a_letter_that_is_not_there_while_its_neighbours_are_was_not_taken(scene: Scene) -> None:
    scene.letter()
    job = scene.doubt()
    scene.letter()
    assert scene.after_the_quiet_time() == 1
    assert scene.stage.state(job) == JobState.SCHEDULED


def test_before_the_quiet_time_is_over_it_may_still_come(scene: Scene) -> None:
    scene.letter()
    job = scene.doubt()
    scene.letter()
    assert scene.search() == 0
    assert scene.stage.state(job) == JobState.IN_DOUBT


@pytest.mark.parametrize("sides", ["before", "after", "none"])
def test_neighbours_on_both_sides_are_needed(scene: Scene, sides: str) -> None:
    if sides == "before":
        scene.letter()
    job = scene.doubt()
    if sides == "after":
        scene.letter()
    assert scene.after_the_quiet_time() == 0
    assert scene.stage.state(job) == JobState.IN_DOUBT


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_neighbour_that_is_not_there_shows_that_copies_get_lost(scene: Scene, lost: str) -> None:
    scene.letter()
    scene.letter(filed=lost != "before")
    scene.doubt()
    scene.letter(filed=lost != "after")
    scene.letter()
    assert scene.after_the_quiet_time() == 0


def test_letters_of_another_route_are_no_neighbours(scene: Scene) -> None:
    scene.letter(route=ELSEWHERE)
    scene.doubt()
    scene.letter(route=ELSEWHERE)
    assert scene.after_the_quiet_time() == 0


def test_neighbours_are_near_in_time(scene: Scene) -> None:
    scene.letter()
    pass_time(scene.store, 301)
    scene.doubt()
    scene.letter()
    assert scene.after_the_quiet_time() == 0


def test_letters_of_another_sender_lie_in_another_mailbox(scene: Scene) -> None:
    """Its account would not have the letter, whether it was taken or not."""
    scene.letter()
    job = scene.doubt()
    scene.letter()
    pass_time(scene.store, QUIET.total_seconds())
    assert scene.search("another sender") == 0
    assert scene.looks == 0
    assert scene.stage.state(job) == JobState.IN_DOUBT


def test_the_server_is_not_asked_where_there_is_no_doubt(scene: Scene) -> None:
    scene.letter()
    scene.search()
    assert scene.looks == 0
