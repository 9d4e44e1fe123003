"""Sender identities: added by a person, one for each address, and never forgotten while letters name them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.domain.engine.senders import BY_HAND, HoldOrder
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import Refused
from tests.conformance.stage import NOBODY, Stage

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
    with pytest.raises(Refused, match=r"News@EXAMPLE\.com"):
        add(stage, replace(NEWS, address="News@EXAMPLE.com", place="smtp.example.net"))
    assert [each.made for each in stage.store.senders.all()] == [NEWS]


def test_of_two_who_add_one_address_at_once_one_is_refused(shared_stage: Stage) -> None:
    def attempt(host: str) -> bool:
        try:
            add(shared_stage, replace(NEWS, place=host))
        except Refused:
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
