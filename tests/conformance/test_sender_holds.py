"""A held sender: nobody claims for it, one letter tries it, and it is let go by a probe or by a person."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

from sendonce.domain.engine.jobs import ClaimRequest, JobState, Turn
from sendonce.domain.engine.outcomes import Deferred
from sendonce.domain.engine.senders import (
    PROBE_WITHIN,
    HoldOrder,
    SenderHold,
    SenderKeys,
    hold_in_force,
    is_away,
)
from sendonce.domain.engine.workers import Pulse, Rest
from tests.conformance.stage import Stage

KEY = "ses/eu-central-1/news@example.com"
UNVERIFIED = HoldOrder("MessageRejected", "Email address is not verified.", 3600.0)
DUE = HoldOrder("MessageRejected", "Email address is not verified.", 0.0)
HELD = Deferred("MessageRejected", "Email address is not verified.", 0.0, throttle=True, hold=True)


def hold(stage: Stage, order: HoldOrder = UNVERIFIED, key: str = KEY) -> SenderHold:
    return stage.store.sender_holds.hold(key, order)


def test_nothing_is_claimed_for_a_held_sender(stage: Stage) -> None:
    """A hold stops the claims of every worker, and the turn tells why."""
    stage.running(3)
    held = hold(stage)
    for _ in range(2):
        turn = stage.claim(sender=KEY)
        assert (turn.claimed, turn.hold) == ((), held)


def test_another_sender_is_not_held(stage: Stage) -> None:
    """A hold is for one sender: another one claims as ever, and is told of no hold."""
    stage.running(2)
    hold(stage)
    turn = stage.claim(sender="ses/eu-central-1/other@example.com")
    assert (len(turn.claimed), turn.hold) == (2, None)


def test_when_its_time_has_come_one_letter_is_tried(stage: Stage) -> None:
    """One job of one worker is the probe; everybody else waits for its answer."""
    stage.running(3)
    held = hold(stage, DUE)
    probe = stage.claim(sender=KEY)
    assert (len(probe.claimed), probe.hold) == (1, held)
    waiting = stage.claim(sender=KEY)
    assert waiting.claimed == ()
    assert waiting.hold is not None
    patience = waiting.hold.next_try_at - probe.claimed[0].claimed_at
    assert patience == timedelta(seconds=PROBE_WITHIN)


def test_with_nothing_to_send_the_probe_is_not_used_up(stage: Stage) -> None:
    """The next letter that comes due is tried at once."""
    hold(stage, DUE)
    assert stage.claim(sender=KEY).claimed == ()
    stage.running(2)
    assert len(stage.claim(sender=KEY).claimed) == 1


def test_who_asks_for_no_letter_gets_no_probe(stage: Stage) -> None:
    """A worker that only gives back what is in nobody's hands would drop the letter that it got."""
    stage.running(1)
    hold(stage, DUE)
    assert stage.claim(sender=KEY, limit=0).claimed == ()
    assert len(stage.claim(sender=KEY).claimed) == 1


def test_of_many_workers_one_gets_the_probe(shared_stage: Stage) -> None:
    """Workers that ask in the same moment do not all try a letter."""
    shared_stage.running(8)
    hold(shared_stage, DUE)
    workers = [shared_stage.worker() for _ in range(6)]

    def claim(worker: str) -> Turn:
        return shared_stage.store.ledger.turn((), ClaimRequest(worker, str(uuid4()), 50, sender=KEY))

    with ThreadPoolExecutor(6) as pool:
        turns = list(pool.map(claim, workers))
    assert sum(len(turn.claimed) for turn in turns) == 1


def test_a_probe_whose_commit_reply_was_lost_is_found_again(stage: Stage) -> None:
    """Asked again by its token, it is the same probe of the same hold."""
    stage.running(2)
    hold(stage, DUE)
    worker = stage.worker()
    first = stage.claim(worker, sender=KEY, token="lost")
    again = stage.claim(worker, sender=KEY, token="lost", retry=True)
    assert [job.id for job in again.claimed] == [job.id for job in first.claimed]
    assert again.hold is not None


def test_a_refused_probe_renews_the_hold(stage: Stage) -> None:
    """The hold keeps its beginning, counts the try, and tells the newest reason."""
    first = hold(stage, DUE)
    renewed = hold(stage, HoldOrder("AccountSuspended", "suspended", 120.0, probe=True))
    assert (renewed.held_at, renewed.tries) == (first.held_at, 2)
    assert (renewed.code, renewed.reason) == ("AccountSuspended", "suspended")
    assert renewed.next_try_at > first.next_try_at + timedelta(seconds=119)
    assert stage.store.sender_holds.get(KEY) == renewed


def test_a_late_refusal_changes_no_hold(stage: Stage) -> None:
    """Letters that were on the wire when the sender was held do not make the hold longer."""
    first = hold(stage)
    assert hold(stage, HoldOrder("Other", "something else", 1.0)) == first


def test_an_accepted_probe_ends_its_own_hold_only(stage: Stage) -> None:
    """A hold that began after the probe's stays."""
    first = hold(stage, DUE)
    assert stage.store.sender_holds.end(first)
    second = hold(stage)
    assert not stage.store.sender_holds.end(first)
    assert stage.store.sender_holds.all() == [second]


def test_a_person_ends_a_hold(stage: Stage) -> None:
    """Released, the sender claims again at once; a sender that is not held cannot be released."""
    stage.running(2)
    hold(stage)
    assert stage.store.sender_holds.release(KEY, "operator")
    assert not stage.store.sender_holds.release(KEY, "operator")
    turn = stage.claim(sender=KEY)
    assert (len(turn.claimed), turn.hold) == (2, None)


def test_a_letter_that_met_a_hold_is_unharmed(stage: Stage) -> None:
    """It is scheduled again with no try used, behind the letters that were not tried yet."""
    stage.running(2)
    first, second = stage.claim().claimed
    stage.settle(first, HELD)
    stage.settle(second, HELD)
    job = stage.job(first)
    assert (job.state, job.tries, job.code) == (JobState.SCHEDULED, 0, "MessageRejected")
    assert [stage.claim_one().id, stage.claim_one().id] == [first.id, second.id]


def test_a_worker_is_seen(stage: Stage) -> None:
    """It is seen when it registers and with each sign of life, until it has been silent for a while."""
    worker_id = stage.worker()
    (before,) = stage.store.workers.open()
    stage.store.workers.see(worker_id, Pulse(5.5, Rest.QUOTA, "used up"))
    (after,) = stage.store.workers.open()
    assert (after.rate, after.rests, after.rest_reason) == (5.5, "quota", "used up")
    assert before.seen_at is not None
    assert after.seen_at is not None
    assert after.seen_at >= before.seen_at
    assert after.is_at_work(after.seen_at + timedelta(seconds=1))
    assert not after.is_at_work(after.seen_at + timedelta(minutes=1))


SECOND = "ses/eu-west-1/news@example.com"
PAUSED = HoldOrder("SendingPausedException", "Sending is paused.", 3600.0, elsewhere=True)


def test_a_sender_whose_region_is_in_trouble_claims_elsewhere(stage: Stage) -> None:
    """Once the hold is written nobody claims at home, and everybody may in the second region."""
    stage.running(3)
    held = hold(stage, PAUSED)
    assert held.elsewhere
    assert stage.claim(sender=KEY).claimed == ()
    assert len(stage.claim(sender=SECOND).claimed) == 3


def test_a_letter_in_doubt_at_home_is_not_claimed_elsewhere(stage: Stage) -> None:
    stage.running(2)
    stage.claim(limit=1, sender=KEY)
    hold(stage, PAUSED)
    assert len(stage.claim(sender=SECOND).claimed) == 1


def test_a_person_who_holds_a_sender_holds_it_everywhere(stage: Stage) -> None:
    """The word of a person takes the place of a move; a later trouble does not change it."""
    hold(stage, PAUSED)
    by_hand = stage.store.sender_holds.hold_by_hand(KEY, "complaints", None, "ann")
    assert not by_hand.elsewhere
    assert hold(stage, PAUSED._replace(probe=True)) == by_hand
    keys = SenderKeys(KEY, SECOND)
    assert hold_in_force(keys, stage.store.sender_holds.get) == by_hand


def test_a_probe_in_trouble_keeps_the_sender_away_for_longer(stage: Stage) -> None:
    stage.running(1)
    hold(stage, PAUSED._replace(seconds=0.0))
    probe = stage.claim(sender=KEY)
    assert probe.hold is not None
    assert probe.hold.elsewhere
    again = hold(stage, PAUSED._replace(probe=True, code="outage"))
    assert (again.tries, again.code, again.elsewhere) == (2, "outage", True)
    assert stage.store.sender_holds.end(again)
    assert is_away(SenderKeys(KEY, SECOND), stage.store.sender_holds.get) is None
