"""When the provider's silence proves that it did not take a letter, and when it proves nothing."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from sendonce.domain.engine.doubts import Standing
from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import ClaimedJob, Job, JobState
from sendonce.domain.engine.outcomes import Accepted, Deferred, Outcome
from sendonce.flows.engine.resolve_doubts import DoubtPolicy, DoubtResolver, weigh_doubts
from sendonce.ports.store import Store
from tests.conformance.backdoor import go_on_listening, pass_time
from tests.conformance.stage import ACCEPTED, DOUBTED, Stage, event_of

QUIET = timedelta(minutes=30)
ROUTE = "ses/eu-central-1/events"
ELSEWHERE = "ses/us-east-1/events"


class Scene:
    """A worker's letters, one of them in doubt; a service that listens unless it is said otherwise."""

    name = "ses"

    def __init__(self, store: Store, recipients: int = 6) -> None:
        self.store = store
        self.stage = Stage(store)
        self.canaries: list[str] = []
        self.listens = True
        store.event_route.attend("serve", durable=False)
        self.pass_seconds(5)
        self.mailout = self.stage.running(recipients)

    # -- the provider --------------------------------------------------------------------------

    async def server_time(self) -> datetime:
        return self.store.ledger.now()

    async def send_canary(self, canary_id: str, sender: str) -> Outcome:
        self.canaries.append(canary_id)
        return Accepted(f"{canary_id} of {sender}")

    def canary_returns(self) -> None:
        self.stage.record(event_of(None, canary=self.canaries[-1]))

    # -- what happens --------------------------------------------------------------------------

    def pass_seconds(self, seconds: float) -> None:
        pass_time(self.store, seconds)
        if self.listens:
            go_on_listening(self.store, "serve")

    def letter(self, *, heard: bool = True, route: str = ROUTE) -> ClaimedJob:
        job = self.stage.claim_one(self.stage.worker(route=route))
        self.stage.settle(job, ACCEPTED)
        if heard:
            self.stage.event(job)
        self.pass_seconds(1)
        return job

    def doubt(self) -> Job:
        found = self.stage.in_doubt()
        self.pass_seconds(1)
        return found

    def resolve(self) -> int:
        policy = DoubtPolicy(QUIET, "news@example.com")
        resolver = DoubtResolver(self.store, self, policy, ROUTE, lambda: str(uuid4()))
        return asyncio.run(resolver.run())

    def standing(self, after_quiet: bool = True) -> tuple[Standing, str]:
        """What becomes of the doubt, once the quiet time is over; told to people and done by the worker."""
        if after_quiet:
            self.pass_seconds(QUIET.total_seconds() + 1)
        ((_, weighed),) = weigh_doubts(self.store, QUIET, limit=10)
        moved = self.resolve()
        assert moved == (weighed.standing == Standing.ABSENT)
        return weighed.standing, weighed.why


@pytest.fixture
def scene(store: Store) -> Scene:
    return Scene(store)


def test_neighbours_that_are_heard_on_both_sides_prove_absence(scene: Scene) -> None:
    """After the quiet time and not before; then the letter is sent again."""
    scene.letter()
    doubt = scene.doubt()
    scene.letter()
    standing, why = scene.standing(after_quiet=False)
    assert (standing, "may still come" in why) == (Standing.WAITING, True)
    assert scene.standing()[0] == Standing.ABSENT
    assert scene.stage.state(doubt) == JobState.SCHEDULED


def test_the_quiet_time_begins_with_the_death(scene: Scene) -> None:
    """Not with the claim: until it died, the worker may have been about to send."""
    scene.letter()
    job = scene.stage.claim_one(scene.stage.worker(route=ROUTE))
    scene.pass_seconds(1)
    scene.letter()
    scene.pass_seconds(QUIET.total_seconds())
    scene.stage.settle(job, DOUBTED, death_proof="its lock is free")
    scene.letter()
    assert scene.standing(after_quiet=False)[0] == Standing.WAITING
    assert scene.standing()[0] == Standing.ABSENT


# -- listening -------------------------------------------------------------------------------------


def test_a_gap_of_sixteen_seconds_is_a_break(scene: Scene) -> None:
    """SNS gives up after 40 to 60 seconds: a process that was away may have lost the event unseen."""
    scene.letter()
    scene.doubt()
    scene.listens = False
    scene.pass_seconds(16)
    scene.store.event_route.attend("serve", durable=False)
    scene.listens = True
    scene.letter()
    standing, why = scene.standing()
    assert (standing, "without a break" in why) == (Standing.PARKED, True)


def test_an_answer_of_ours_that_failed_is_a_break(scene: Scene) -> None:
    """A 5xx, or a note that could not be written: the event that met it may be given up."""
    scene.letter()
    scene.doubt()
    scene.store.event_route.attend("serve", durable=False, anew=True)
    scene.letter()
    assert scene.standing()[0] == Standing.PARKED


def test_nobody_else_can_make_up_for_a_receiver_that_is_lost(scene: Scene) -> None:
    """The event may have gone to the one that died."""
    scene.letter()
    scene.store.event_route.attend("second", durable=False)
    scene.pass_seconds(1)
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.PARKED


def test_a_receiver_that_signs_off_hands_over(scene: Scene) -> None:
    scene.store.event_route.attend("second", durable=False)
    scene.letter()
    scene.doubt()
    scene.store.event_route.leave("second")
    scene.letter()
    assert scene.standing()[0] == Standing.ABSENT


def test_what_was_claimed_before_anybody_listened_is_parked(scene: Scene) -> None:
    scene.store.event_route.leave("serve")
    scene.listens = False
    scene.pass_seconds(20)
    scene.letter()
    scene.doubt()
    scene.store.event_route.attend("serve", durable=False)
    scene.listens = True
    scene.letter()
    assert scene.standing()[0] == Standing.PARKED


def test_a_break_after_the_quiet_time_takes_nothing_back(scene: Scene) -> None:
    """What was proven by listening stays proven."""
    scene.letter()
    scene.doubt()
    scene.letter()
    scene.pass_seconds(QUIET.total_seconds() + 1)
    scene.listens = False
    scene.pass_seconds(3600)
    assert scene.standing(after_quiet=False)[0] == Standing.ABSENT


def test_a_queue_is_listened_to_once_it_was_drained_after_the_quiet_time(scene: Scene) -> None:
    """It keeps its events meanwhile, so a pause in reading is no break."""
    scene.listens = False
    scene.store.event_route.attend("queue", durable=True)
    scene.pass_seconds(20)
    scene.letter()
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.WAITING
    scene.store.event_route.attend("queue", durable=True)
    assert scene.standing(after_quiet=False)[0] == Standing.ABSENT


# -- neighbours ------------------------------------------------------------------------------------


def test_a_lone_letter_is_parked_until_a_person_decides(scene: Scene) -> None:
    """None near is no proof, though events come through now, as the canary shows."""
    scene.doubt()
    scene.resolve()
    scene.canary_returns()
    standing, why = scene.standing()
    assert (standing, "5 minutes before it" in why) == (Standing.PARKED, True)


def test_neighbours_are_near_in_time_not_in_the_list(scene: Scene) -> None:
    """A second try an hour later has the neighbours of that hour: silent ones of another mailout count."""
    retried = scene.stage.claim_one()
    scene.stage.settle(retried, Deferred("450", "greylisted"), retry_after=3600.0)
    for _ in range(5):
        scene.letter()
    scene.pass_seconds(3601)
    other = scene.stage.new_mailout().id
    scene.store.mailouts.start(other)
    scene.stage.plan(other)
    group = scene.stage.claim(scene.stage.worker()).claimed
    (doubt,) = [job for job in group if job.id == retried.id]
    for job in group:
        if job.id != doubt.id:
            scene.stage.settle(job, ACCEPTED)
    scene.stage.settle(doubt, DOUBTED, death_proof="its own word")
    scene.pass_seconds(1)
    standing, why = scene.standing()
    assert (standing, why.startswith("6 letters")) == (Standing.PARKED, True)


def test_one_silent_neighbour_keeps_it_parked_until_it_is_heard(scene: Scene) -> None:
    scene.letter()
    silent = scene.letter(heard=False)
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.PARKED
    scene.stage.event(silent)
    assert scene.standing(after_quiet=False)[0] == Standing.ABSENT


def test_a_delivery_is_no_send_event(scene: Scene) -> None:
    """The neighbour's Send event was lost, so this letter's may be lost too."""
    scene.letter()
    silent = scene.letter(heard=False)
    scene.stage.event(silent, EventKind.DELIVERED)
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.PARKED


@pytest.mark.parametrize(("seconds", "standing"), [(290, Standing.ABSENT), (302, Standing.PARKED)])
def test_near_is_five_minutes(scene: Scene, seconds: float, standing: Standing) -> None:
    """On either side: who was heard further away shows nothing about the time in question."""
    scene.letter()
    scene.pass_seconds(seconds)
    scene.doubt()
    scene.pass_seconds(seconds)
    scene.letter()
    assert scene.standing()[0] == standing


def test_one_side_does_not_stand_for_the_other(scene: Scene) -> None:
    """It was heard before; the next one that was heard came ten minutes later."""
    scene.letter()
    scene.doubt()
    scene.pass_seconds(600)
    scene.letter()
    standing, why = scene.standing()
    assert (standing, "5 minutes after it" in why) == (Standing.PARKED, True)


def test_a_silent_letter_further_away_is_another_matter(scene: Scene) -> None:
    scene.letter(heard=False)
    scene.pass_seconds(301)
    scene.letter()
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.ABSENT


def test_another_route_proves_nothing_and_disturbs_nothing(scene: Scene) -> None:
    """Another region's letters go and are told of by other ways."""
    scene.letter(route=ELSEWHERE)
    scene.doubt()
    scene.letter(route=ELSEWHERE)
    assert scene.standing()[0] == Standing.PARKED


def test_silence_on_another_route_disturbs_nothing(scene: Scene) -> None:
    scene.letter()
    scene.letter(heard=False, route=ELSEWHERE)
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.ABSENT


def test_an_operators_word_is_no_acceptance(scene: Scene) -> None:
    """No event is to be expected of it: it keeps nobody parked, and proves nothing."""
    scene.letter()
    told = scene.doubt()
    scene.store.ledger.resolve([told.id], sent=True, actor="jane", note="")
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.ABSENT


# -- canaries --------------------------------------------------------------------------------------


def test_a_canary_follows_the_last_letter(scene: Scene) -> None:
    """One is sent where no letter follows; its event counts as a neighbour's, once it is there."""
    scene.letter()
    scene.doubt()
    scene.resolve()
    assert len(scene.canaries) == 1
    scene.resolve()
    assert len(scene.canaries) == 1
    standing, why = scene.standing()
    assert (standing, why.startswith("1 letter")) == (Standing.PARKED, True)
    scene.canary_returns()
    assert scene.standing(after_quiet=False)[0] == Standing.ABSENT


def test_a_canary_that_came_back_before_counts_as_a_neighbour(scene: Scene) -> None:
    """The doubt of a moment ago had one sent."""
    first = scene.doubt()
    scene.pass_seconds(1)
    scene.resolve()
    scene.canary_returns()
    scene.store.ledger.resolve([first.id], sent=True, actor="jane", note="")
    scene.pass_seconds(1)
    scene.doubt()
    scene.letter()
    assert scene.standing()[0] == Standing.ABSENT


def test_a_canary_that_is_too_late_to_be_near_still_shows_that_the_route_works(scene: Scene) -> None:
    """The death was found out half an hour after the claim: it has neighbours, and nothing follows."""
    scene.letter()
    claimed = scene.stage.claim_one()
    scene.pass_seconds(1)
    scene.letter()
    scene.pass_seconds(1800)
    scene.stage.settle(claimed, DOUBTED, death_proof="its lock is free")
    scene.pass_seconds(1)
    scene.resolve()
    assert len(scene.canaries) == 1
    assert scene.standing()[0] == Standing.WAITING
    scene.canary_returns()
    assert scene.standing(after_quiet=False)[0] == Standing.ABSENT


def test_a_delivery_after_the_death_does_not_show_that_send_events_come(scene: Scene) -> None:
    scene.letter()
    claimed = scene.stage.claim_one()
    scene.pass_seconds(1)
    scene.letter()
    scene.pass_seconds(1800)
    scene.stage.settle(claimed, DOUBTED, death_proof="its lock is free")
    scene.pass_seconds(1)
    scene.stage.event(scene.letter(heard=False), EventKind.DELIVERED)
    assert scene.standing()[0] == Standing.WAITING


def test_no_canary_is_sent_for_what_is_parked(scene: Scene) -> None:
    scene.doubt()
    scene.store.event_route.attend("serve", durable=False, anew=True)
    scene.pass_seconds(1)
    assert scene.resolve() == 0
    assert scene.canaries == []
