"""Sender identities: added by a person, one for each address, and never forgotten while letters name them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.jobs import Turn
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.domain.engine.senders import BY_HAND, OWN_SENDER, HoldOrder
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import RefusedByRule
from tests.conformance.stage import LETTER, NOBODY, Stage, address

NEWS = NewSender(
    address="news@example.com",
    transport="smtp",
    place="smtp.example.com",
    name="The Bakery",
    reply_to="hello@example.com",
    port=465,
    security="tls",
    username="news@example.com",
    secret_from="SENDER_NEWS_PASSWORD",
    rate_limit=5,
    rate_key="the bakery's host",
    connections=2,
)
PAUSED = "01900000-0000-7000-8000-000000000001"
KEY = "smtp/smtp.example.com:465/news@example.com"


def add(stage: Stage, new: NewSender = NEWS) -> SenderIdentity:
    return stage.store.senders.add(DEFAULT_TENANT, new, "ann")


def test_a_sender_is_kept_as_it_was_described(stage: Stage) -> None:
    added = add(stage)
    assert added.made == NEWS
    assert stage.store.senders.get(added.id) == added
    assert stage.store.senders.get(NOBODY) is None


def test_two_senders_with_one_address_are_refused(stage: Stage) -> None:
    """However the address is spelled, and whatever the second one is like otherwise."""
    add(stage)
    with pytest.raises(RefusedByRule, match=r"News@EXAMPLE\.com"):
        add(stage, replace(NEWS, address="News@EXAMPLE.com", place="smtp.example.net"))
    assert [each.made for each in stage.store.senders.all()] == [NEWS]


def test_of_two_who_add_one_address_at_once_one_is_refused(shared_stage: Stage) -> None:
    def attempt(host: str) -> bool:
        try:
            add(shared_stage, replace(NEWS, place=host))
        except RefusedByRule:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(attempt, [f"smtp{n}.example.com" for n in range(4)])) == 1


def test_senders_are_listed_by_address(stage: Stage) -> None:
    for name in ("carl", "ann", "bob"):
        add(stage, replace(NEWS, address=f"{name}@example.com"))
    assert [each.address[:3] for each in stage.store.senders.all()] == ["ann", "bob", "car"]


def test_a_removed_sender_is_still_known_by_its_id(stage: Stage) -> None:
    """The letters that wait for it name it."""
    added = add(stage)
    assert stage.store.senders.remove(added.id, "ann")
    assert not stage.store.senders.remove(added.id, "ann")
    assert stage.store.senders.all() == []
    known = stage.store.senders.get(added.id)
    assert known is not None
    assert known.removed_at is not None
    assert stage.store.senders.all(removed=True) == [known]


def test_the_address_of_a_removed_sender_brings_it_back(stage: Stage) -> None:
    """With the same id, so that the letters that waited for it go on, and as it is described now."""
    removed = add(stage)
    stage.store.senders.remove(removed.id, "ann")
    moved = replace(NEWS, place="smtp.example.net")
    back = add(stage, moved)
    assert (back.id, back.made, back.removed_at) == (removed.id, moved, None)
    assert stage.store.senders.all() == [back]


def test_a_person_holds_a_sender_until_it_is_released(stage: Stage) -> None:
    """Nothing is claimed, no probe is tried, and an answer that was on its way ends nothing."""
    stage.running(2)
    refused = stage.store.sender_holds.hold(KEY, HoldOrder("535", "no such account", 0.0))
    held = stage.store.sender_holds.hold_by_hand(KEY, "the invoice is open", None, "ann")
    assert (held.code, held.until_released) == (BY_HAND, True)
    stage.store.sender_holds.hold(KEY, HoldOrder("535", "no such account", 0.0, probe=True))
    assert not stage.store.sender_holds.end(refused)
    turn = stage.claim(sender=KEY)
    assert (turn.claimed, turn.hold) == ((), held)
    assert stage.store.sender_holds.release(KEY, "ann")
    assert len(stage.claim(sender=KEY).claimed) == 2


def test_a_person_holds_a_sender_until_a_time(stage: Stage) -> None:
    """When it has come, one letter is tried."""
    stage.running(2)
    past = stage.store.ledger.now() - timedelta(seconds=1)
    stage.store.sender_holds.hold_by_hand(KEY, "not before nine", past, "ann")
    assert len(stage.claim(sender=KEY).claimed) == 1


# -- claiming for one sender -----------------------------------------------------------------------


def running(stage: Stage, sender_id: str, recipients: int = 2) -> str:
    """A dispatch of that sender, whose jobs may be claimed."""
    letter_id = stage.store.letters.put(DEFAULT_TENANT, LETTER)
    new = NewDispatch("step", "owner", letter_id, sender_id)
    dispatch_id = stage.store.dispatches.open(DEFAULT_TENANT, new).id
    stage.store.dispatches.plan(dispatch_id, [NewJob(address(n)) for n in range(recipients)])
    assert stage.store.dispatches.run(dispatch_id)
    return dispatch_id


def dispatches_of(turn: Turn) -> set[str]:
    return {job.dispatch_id for job in turn.claimed}


def test_a_claim_takes_the_letters_of_one_sender(stage: Stage) -> None:
    """The environment's own sender takes none of an added one's, and an added one none of anybody else's."""
    added = add(stage)
    own, others = running(stage, OWN_SENDER), running(stage, added.id)
    assert dispatches_of(stage.claim()) == {own}
    assert stage.claim().claimed == ()
    assert dispatches_of(stage.claim(sender_id=added.id)) == {others}


def test_dispatches_of_another_sender_stand_in_nobodys_way(stage: Stage) -> None:
    """More of them than a claim looks at, all due and all of a sender that does not send."""
    for _ in range(5):
        running(stage, NOBODY)
    own = running(stage, OWN_SENDER)
    assert dispatches_of(stage.claim(limit=2)) == {own}


def test_a_held_sender_holds_its_own_letters_and_nobody_elses(stage: Stage) -> None:
    added = add(stage)
    own = running(stage, OWN_SENDER)
    running(stage, added.id)
    stage.store.sender_holds.hold(KEY, HoldOrder("535", "authentication failed", 3600.0))
    held = stage.claim(sender=KEY, sender_id=added.id)
    assert held.claimed == ()
    assert held.hold is not None
    assert dispatches_of(stage.claim(sender="smtp/localhost:25/own@example.com")) == {own}


def test_dispatches_of_one_sender_take_turns(stage: Stage) -> None:
    """The claims of another sender in between change nothing about it."""
    added = add(stage)
    running(stage, OWN_SENDER, 9)
    first, second = running(stage, added.id, 3), running(stage, added.id, 3)
    order = []
    for _ in range(4):
        order += dispatches_of(stage.claim(sender_id=added.id, limit=1))
        stage.claim(limit=1)
    assert order in ([first, second] * 2, [second, first] * 2)


def test_a_job_leaves_from_the_sender_of_its_dispatch(stage: Stage) -> None:
    added = add(stage)
    dispatch_id = running(stage, added.id)
    plan = stage.store.dispatches.plan
    assert plan(dispatch_id, [NewJob(address(8), sender_id=added.id)]) == 1
    with pytest.raises(RefusedByRule, match="open a dispatch for each sender"):
        plan(dispatch_id, [NewJob(address(9), sender_id=NOBODY)])


def test_the_senders_that_letters_wait_for(stage: Stage) -> None:
    """Removed and unknown ones too; not the environment's own, nor one whose letters are paused or gone."""
    added = add(stage)
    running(stage, OWN_SENDER)
    running(stage, added.id, 1)
    running(stage, NOBODY)
    stage.store.dispatches.set_paused(running(stage, PAUSED), True)
    stage.store.senders.remove(added.id, "ann")
    assert {each.sender_id for each in stage.store.senders.waiting()} == {added.id, NOBODY}
    assert all(each.due_from <= stage.store.ledger.now() for each in stage.store.senders.waiting())
    assert stage.store.jobs.oldest_due(PAUSED) is None
    assert stage.store.jobs.oldest_due(NOBODY) is not None
    stage.claim(sender_id=added.id)
    stage.claim(sender_id=added.id)
    assert {each.sender_id for each in stage.store.senders.waiting()} == {NOBODY}
