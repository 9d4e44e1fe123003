"""Writing to the rest: whom an earlier mailout went to, or may have, gets no second letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.mailouts.mailouts import MailoutStatus, NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from sendonce.errors import NotFound, RefusedByRule
from sendonce.flows.mailouts.start_mailout import StartOrder, StartReport, start_mailout
from tests.conformance.backdoor import make_tenant
from tests.conformance.stage import ACCEPTED, DEFERRED, DOUBTED, LETTER, REFUSED, Stage, address
from tests.conformance.test_timed_starts import SETTINGS


def earlier(stage: Stage, people: int = 7) -> str:
    """A mailout that is over: 0 and 1 sent, 2 in doubt, 3 failed, 4 dead, 5 and 6 cancelled."""
    mailout_id = stage.running(people)
    jobs = sorted(stage.claim(limit=5).claimed, key=lambda job: job.recipient)
    for job, outcome in zip(jobs, (ACCEPTED, ACCEPTED, DOUBTED, REFUSED, DEFERRED), strict=True):
        stage.settle(job, outcome, exhausted=outcome is DEFERRED)
    stage.store.dispatches.cancel(mailout_id)
    stage.store.dispatches.cancel_chunk(mailout_id, 100)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT
    return mailout_id


def start(stage: Stage, *old: str, **how: Any) -> tuple[str, StartReport]:
    mailout_id = stage.mailout()
    order = StartOrder(mailout_id, DEFAULT_TENANT, except_of=old, **how)
    return mailout_id, start_mailout(stage.store, lambda: SETTINGS, order)


def waiting(stage: Stage, mailout_id: str) -> list[str]:
    jobs = stage.store.jobs.list(states=[JobState.SCHEDULED], dispatch_id=mailout_id, limit=1000)
    return sorted(job.recipient for job in jobs)


def texts(numbers: Sequence[int]) -> list[str]:
    return [address(n).text for n in numbers]


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_the_rest_is_written_to_and_nobody_else(stage: Stage, size: int) -> None:
    """Sent and in doubt are skipped with the reason; failed, dead, cancelled and new people get it."""
    old = earlier(stage)
    stage.subscribe(range(9))
    new, report = start(stage, old)
    assert report.planned == 6
    stage.plan(new, size)
    assert waiting(stage, new) == texts([3, 4, 5, 6, 7, 8])
    skipped = stage.store.jobs.list(states=[JobState.SKIPPED], dispatch_id=new)
    assert {(job.recipient, job.reason) for job in skipped} == {
        (a, f"got mailout {old}") for a in texts([0, 1, 2])
    }
    books = stage.store.jobs.books(new)
    assert (books.planned, books.skipped, books.scheduled) == (9, 3, 6)


@pytest.mark.parametrize("size", [1, 1000])
def test_after_an_adoption_a_failed_letter_may_have_arrived(stage: Stage, size: int) -> None:
    """It may have been retried in the time that the database forgot. What was cancelled was not."""
    old = earlier(stage)
    stage.store.ledger.adopt(stage.store.fingerprint(), 1, "jane")
    new, report = start(stage, old)
    assert report.planned == 2
    stage.store.dispatches.set_paused(new, False)
    stage.plan(new, size)
    assert waiting(stage, new) == texts([5, 6])


def test_several_earlier_mailouts(stage: Stage) -> None:
    """Whoever got any of them is left out; each chunk takes from all of them."""
    old = earlier(stage)
    rest, _ = start(stage, old)
    stage.plan(rest)
    for job in stage.claim(limit=2).claimed:
        stage.settle(job, ACCEPTED)
    stage.store.dispatches.cancel(rest)
    stage.store.dispatches.cancel_chunk(rest, 100)
    stage.store.dispatches.complete(rest)
    third, report = start(stage, old, rest)
    stage.plan(third, 1)
    assert (report.planned, len(waiting(stage, third))) == (2, 2)


def sent_to(stage: Stage, numbers: Sequence[int]) -> str:
    """A mailout that everybody on the list got."""
    stage.subscribe(numbers)
    mailout_id = stage.mailout()
    stage.store.mailouts.start(mailout_id)
    stage.plan(mailout_id)
    for job in stage.claim().claimed:
        stage.settle(job, ACCEPTED)
    stage.store.dispatches.complete(mailout_id)
    return mailout_id


def test_earlier_mailouts_to_lists_of_different_length(stage: Stage) -> None:
    """Each is read to its end, though one is through long before the other."""
    short, long = sent_to(stage, [5, 6, 7]), sent_to(stage, range(8))
    stage.subscribe([8])
    for order in ((short, long), (long, short)):
        new, report = start(stage, *order)
        stage.plan(new, 2)
        assert (report.planned, waiting(stage, new)) == (1, texts([8]))


def test_another_spelling_of_the_same_mailbox_is_the_same_person(stage: Stage) -> None:
    """People are compared by suppression key."""
    stage.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(parse_address("jane.doe+a@gmail.com"))])
    old = stage.mailout()
    stage.store.mailouts.start(old)
    stage.plan(old)
    stage.settle(stage.claim_one(), ACCEPTED)
    stage.store.dispatches.complete(old)
    other = [NewSubscriber(parse_address(text)) for text in ("janedoe+b@gmail.com", "john@gmail.com")]
    stage.store.subscribers.upsert(DEFAULT_TENANT, other)
    new, _ = start(stage, old)
    stage.plan(new)
    assert waiting(stage, new) == ["john@gmail.com"]


def test_the_keys_outlive_an_erasure_and_a_rotation(stage: Stage) -> None:
    """Somebody who was erased and later asked to be written to again is still known to have got it."""
    old = earlier(stage)
    stage.store.people.erase(address(0), "operator")
    stage.store.keys.rotate("operator")
    stage.store.suppressions.remove("*", address(0), "operator")
    stage.subscribe([0])
    new, _ = start(stage, old)
    stage.plan(new)
    assert address(0).text not in waiting(stage, new)


def test_a_rotation_in_the_middle_changes_nothing(stage: Stage) -> None:
    """What was gathered moves with all other keys."""
    old = earlier(stage)
    new, _ = start(stage, old)
    stage.plan_once(new, 4)
    stage.store.keys.rotate("operator")
    stage.plan(new, 4)
    assert waiting(stage, new) == texts([3, 4, 5, 6])


def test_refused_while_the_earlier_one_may_still_reach_somebody(stage: Stage) -> None:
    """Sending or paused: nobody knows yet. Never sent, unknown, itself: a mistake. Nothing is started."""
    over = sent_to(stage, [0])
    running = stage.running(2)
    make_tenant(stage.store, "another")
    elsewhere = stage.store.mailouts.create("another", NewMailout("news", "file", LETTER)).id
    for old, error in (
        (running, "is not over"),
        (elsewhere, "There is no earlier mailout"),
        (stage.mailout(), "was never sent"),
        ("01900000-0000-7000-8000-000000000000", "There is no earlier mailout"),
    ):
        with pytest.raises((RefusedByRule, NotFound), match=error):
            start(stage, old)
        with pytest.raises((RefusedByRule, NotFound), match=error):
            start(stage, over, old)
    stage.store.dispatches.set_paused(running, True)
    with pytest.raises(RefusedByRule, match="is not over"):
        start(stage, running)


def test_nobody_is_left(stage: Stage) -> None:
    """A mailout to nobody is not started."""
    old = stage.running(1)
    stage.settle(stage.claim_one(), ACCEPTED)
    stage.store.dispatches.complete(old)
    with pytest.raises(RefusedByRule, match="nobody to write to"):
        start(stage, old)


def test_what_was_said_holds_when_the_clock_starts_it(stage: Stage) -> None:
    """A scheduled mailout keeps whom it leaves out; a dry run changes nothing."""
    old = earlier(stage)
    new, _ = start(stage, old, dry_run=True)
    assert stage.get(new).except_of == ()
    stage.store.mailouts.schedule(new, stage.store.ledger.now(), except_of=[old])
    assert stage.get(new).except_of == (old,)
    stage.store.mailouts.start(new)
    stage.plan(new)
    assert waiting(stage, new) == texts([3, 4, 5, 6])


def test_a_second_start_gathers_anew(shared_stage: Stage) -> None:
    """A mailout that was stopped after it had begun to gather leaves out the same people."""
    stage = shared_stage
    old = earlier(stage)
    new, _ = start(stage, old)
    stage.plan_once(new, 1000)
    assert stage.store.mailouts.stop_before_first(new, "no footer")
    stage.store.mailouts.start(new)
    stage.plan(new)
    assert waiting(stage, new) == texts([3, 4, 5, 6])
