"""The engine and a provider that refuses the sender: nobody's letter is burnt."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest

from sendonce.domain.engine.jobs import ClaimRequest, JobState, Settlement
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.senders import OUTAGE, RUN_THAT_HOLDS, HoldOrder, outage_seconds
from tests.unit.test_send import Provider, Scene, Stationery, Troubled

KEY = "ses/eu-central-1/a@b.c"
UNVERIFIED = Deferred("MessageRejected", "Email address is not verified.", throttle=True, hold=True)
BLOCKED = Refused("550", "Sender blocked")


class Answers:
    """A provider's mind: ``now`` is what it answers to every letter."""

    def __init__(self, now: Outcome) -> None:
        self.now = now

    def __call__(self, _parcel: Parcel) -> Outcome:
        return self.now


def scene_of(answers: Answers, people: int, connections: int = 4) -> Scene:
    return Scene(people=people, connections=connections, provider=Provider(answer=answers))


def is_held(scene: Scene) -> bool:
    return scene.store.sender_holds.get(KEY) is not None


def make_due(scene: Scene) -> None:
    """The time of the next try has come."""
    hold = scene.store.state.sender_holds[KEY]
    past = hold.next_try_at - timedelta(hours=2)
    scene.store.state.sender_holds[KEY] = dataclasses.replace(hold, next_try_at=past)


def at_rest(scene: Scene) -> bool:
    return is_held(scene) and JobState.SENDING not in scene.states()


def test_a_refused_sender_is_held_and_no_letter_is_harmed() -> None:
    """Of three hundred letters a handful meet the refusal; all are scheduled, and no try is used up."""
    scene = scene_of(Answers(UNVERIFIED), people=300)
    scene.play(until=lambda: at_rest(scene))
    assert scene.states() == {JobState.SCHEDULED: 300}
    assert {job.tries for job in scene.jobs()} == {0}
    assert len(scene.provider.got) <= 2 * scene.connections
    hold = scene.store.sender_holds.get(KEY)
    assert hold is not None
    assert (hold.code, hold.reason, hold.tries) == (UNVERIFIED.code, UNVERIFIED.reason, 1)


def test_a_claim_under_way_when_the_sender_is_refused_is_given_back() -> None:
    """The ledger is still busy with the next claim when the refusal comes: nothing of that claim leaves."""
    claiming, refused = threading.Event(), threading.Event()
    scene = Scene(people=10, batch_size=1)

    async def wait_for_the_claim(_parcel: Parcel) -> None:
        if scene.provider.got:
            assert await asyncio.to_thread(claiming.wait, 5)

    def answer(_parcel: Parcel) -> Outcome:
        if len(scene.provider.got) == 1:
            return Accepted("1")
        refused.set()
        return UNVERIFIED

    def claim_slowly(when: str, settlements: Sequence[Settlement], claim: ClaimRequest | None) -> None:
        if when == "after" and settlements and claim is not None:
            claiming.set()
            assert refused.wait(5)

    scene.provider.before, scene.provider.answer = wait_for_the_claim, answer
    scene.ledger = Troubled(scene.store.ledger, claim_slowly)
    scene.play(until=lambda: at_rest(scene))
    assert len(scene.provider.got) == 2
    assert scene.states() == {JobState.SENT: 1, JobState.SCHEDULED: 9}


def test_the_log_says_how_to_release_the_sender(caplog: pytest.LogCaptureFixture) -> None:
    """As a command that can be copied."""
    scene = scene_of(Answers(UNVERIFIED), people=3)
    scene.play(until=lambda: at_rest(scene))
    (held,) = [record for record in caplog.records if record.getMessage() == "the sender is held"]
    assert vars(held)["fields"]["after_mending"] == f"sendonce sender release {KEY}"


def test_everybody_gets_their_letter_after_the_cause_is_mended_and_the_hold_released() -> None:
    """Released by a person, the sender goes on at once with everybody."""
    answers = Answers(UNVERIFIED)
    scene = scene_of(answers, people=40)
    scene.play(until=lambda: at_rest(scene))
    answers.now = Accepted("1")
    scene.store.sender_holds.release(KEY, "operator")
    scene.worker = scene.stage.worker()
    scene.play()
    assert scene.states() == {JobState.SENT: 40}


def test_an_accepted_probe_ends_the_hold() -> None:
    """One letter is tried when its time has come; then the others follow, in the same run."""
    answers = Answers(UNVERIFIED)
    scene = scene_of(answers, people=40)

    def mend() -> bool:
        if answers.now is UNVERIFIED and at_rest(scene):
            answers.now = Accepted("1")
            make_due(scene)
        return scene._all_settled()

    scene.play(until=mend)
    assert scene.states() == {JobState.SENT: 40}
    assert not is_held(scene)


def test_a_refused_probe_makes_the_hold_longer() -> None:
    """One letter, one more try of the hold, twice the time; and the probe is another letter each time."""
    scene = scene_of(Answers(UNVERIFIED), people=10, connections=1)
    scene.play(until=lambda: at_rest(scene))
    scene.provider.got.clear()
    for tries in (2, 3):
        make_due(scene)
        scene.worker = scene.stage.worker()
        scene.play(until=lambda tries=tries: scene.store.sender_holds.get(KEY).tries == tries)  # type: ignore[misc,union-attr]
    assert len(set(scene.provider.got)) == len(scene.provider.got) == 2
    hold = scene.store.sender_holds.get(KEY)
    assert hold is not None
    assert hold.next_try_at - scene.store.ledger.now() > timedelta(seconds=200)
    assert scene.states() == {JobState.SCHEDULED: 10}


def test_a_run_of_equal_refusals_holds_the_sender() -> None:
    """Twenty letters fail, those on the wire behind them too, and all others wait."""
    scene = scene_of(Answers(BLOCKED), people=100)
    scene.play(until=lambda: at_rest(scene))
    states = scene.states()
    assert RUN_THAT_HOLDS <= states[JobState.FAILED] <= RUN_THAT_HOLDS + scene.connections
    assert states[JobState.SCHEDULED] == 100 - states[JobState.FAILED]
    hold = scene.store.sender_holds.get(KEY)
    assert hold is not None
    assert f"sendonce jobs retry --failed --mailout {scene.mailout} --code 550" in hold.reason
    assert "Sender blocked" in hold.reason


def test_a_probe_that_meets_the_refusal_of_the_run_does_not_fail() -> None:
    """While the sender is held for a refusal, a letter that meets it is not at fault."""
    scene = scene_of(Answers(BLOCKED), people=30)
    scene.store.sender_holds.hold(KEY, HoldOrder("550", "20 letters in a row", 0.0))
    scene.play(until=lambda: scene.store.sender_holds.get(KEY).tries == 2)  # type: ignore[union-attr]
    assert scene.states() == {JobState.SCHEDULED: 30}


def test_refusals_with_acceptances_between_them_hold_nobody() -> None:
    """A list with a bad half is sent to the end."""
    outcomes = iter([Refused("550", "User unknown"), Accepted("1")] * 40)
    scene = scene_of(Answers(BLOCKED), people=80, connections=1)
    scene.provider.answer = lambda _parcel: next(outcomes)
    scene.play()
    assert scene.states() == {JobState.SENT: 40, JobState.FAILED: 40}
    assert not is_held(scene)


def test_letters_that_we_cannot_build_hold_nobody() -> None:
    """They are refused here, not by the provider: the sender is not to blame."""
    from sendonce.errors import BadInput

    def build(*_: object) -> Parcel:
        raise BadInput("the name has a line break")

    scene = Scene(people=50, letters=Stationery(build))
    scene.play()
    assert scene.states() == {JobState.FAILED: 50}
    assert not is_held(scene)


@pytest.mark.parametrize("connections", [1, 8])
def test_many_refusals_at_once_are_one_hold(connections: int) -> None:
    """The letters that were on the wire together do not make the first hold longer."""
    scene = scene_of(Answers(UNVERIFIED), people=100, connections=connections)
    scene.play(until=lambda: at_rest(scene))
    hold = scene.store.sender_holds.get(KEY)
    assert hold is not None
    assert hold.tries == 1
    assert hold.next_try_at - hold.held_at <= timedelta(seconds=60)


PAUSED = Deferred("SendingPausedException", "paused", throttle=True, hold=True, outage=True)
ANSWERED_500 = InDoubt("SES answered 500", outage=True)


def two_regions(answer: Outcome, people: int = 30) -> Scene:
    scene = scene_of(Answers(answer), people)
    scene.quiet_time = 3600.0
    return scene


@pytest.mark.parametrize("trouble", [PAUSED, ANSWERED_500])
def test_a_region_in_trouble_is_left_for_the_second_one(trouble: Outcome) -> None:
    """A pause at once, errors after five of them; no more letters meet them than are on the wire."""
    scene = two_regions(trouble)
    scene.play(until=lambda: at_rest(scene))
    assert scene.store.state.sender_holds[KEY].elsewhere
    assert len(scene.provider.got) <= 5 + 2 * scene.connections


def test_other_refusals_of_the_sender_do_not_move_it() -> None:
    """What is wrong with its settings here may be wrong there, and is better seen."""
    scene = two_regions(UNVERIFIED)
    scene.play(until=lambda: at_rest(scene))
    assert not scene.store.state.sender_holds[KEY].elsewhere


def test_without_a_second_region_a_pause_is_a_hold_like_any_other() -> None:
    scene = scene_of(Answers(PAUSED), people=30)
    scene.play(until=lambda: at_rest(scene))
    assert not scene.store.state.sender_holds[KEY].elsewhere


def test_without_a_second_region_an_outage_holds_the_sender() -> None:
    """After five troubles, and for longer after the next one."""
    scene = scene_of(Answers(ANSWERED_500), people=30)
    scene.play(until=lambda: at_rest(scene))
    hold = scene.store.state.sender_holds[KEY]
    assert (hold.code, hold.elsewhere) == (OUTAGE, False)
    assert ANSWERED_500.reason in hold.reason
    assert len(scene.provider.got) <= 5 + 2 * scene.connections
    make_due(scene)
    scene.worker = scene.stage.worker()
    scene.play(until=lambda: scene.store.state.sender_holds[KEY].tries == 2 and at_rest(scene))


@pytest.mark.parametrize(("tries", "seconds"), [(1, 15), (2, 30), (3, 60), (50, 60)])
def test_an_outage_holds_for_a_minute_at_the_most(tries: int, seconds: float) -> None:
    assert outage_seconds(tries) == seconds


def test_one_error_of_the_letter_tried_at_home_is_enough_to_stay_away() -> None:
    scene = two_regions(ANSWERED_500)
    scene.play(until=lambda: at_rest(scene))
    make_due(scene)
    scene.worker = scene.stage.worker()
    met = len(scene.provider.got)
    scene.play(until=lambda: scene.store.state.sender_holds[KEY].tries == 2 and at_rest(scene))
    assert len(scene.provider.got) == met + 1
    assert scene.store.state.sender_holds[KEY].elsewhere
