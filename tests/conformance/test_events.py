"""Delivery events: any order, any number of copies, one end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import Any
from uuid import uuid4

import pytest

from sendonce.domain.engine.events import BounceType, DeliveryEvent, EventKind, EventVerdict, UnreadableEvent
from sendonce.domain.engine.jobs import ClaimedJob, JobState
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber, SubscriberStatus
from sendonce.domain.people.suppressions import SuppressionReason
from tests.conformance.backdoor import make_tenant, pass_time
from tests.conformance.stage import (
    ACCEPTED,
    DEFERRED,
    DOUBTED,
    LONG_AGO,
    NOBODY,
    REFUSED,
    Stage,
    address,
    event_of,
)

K = EventKind
STATES: dict[str, Callable[[Stage, ClaimedJob], object]] = {
    "sending": lambda stage, job: None,
    "in doubt": lambda stage, job: stage.settle(job, DOUBTED),
    "scheduled": lambda stage, job: stage.settle(job, DEFERRED, retry_after=3600.0),
    "failed": lambda stage, job: stage.settle(job, REFUSED),
    "dead": lambda stage, job: stage.settle(job, DEFERRED, exhausted=True),
    "sent": lambda stage, job: stage.settle(job, ACCEPTED),
}


@pytest.mark.parametrize("state", STATES)
def test_any_event_of_the_attempt_is_an_acceptance(stage: Stage, state: str) -> None:
    """The provider speaks only of letters that it took: the job is sent, wherever it was."""
    stage.running(len(K))
    for job, kind in zip(stage.claim().claimed, K, strict=True):
        STATES[state](stage, job)
        assert stage.event(job, kind) == EventVerdict.APPLIED
        found = stage.job(job)
        assert (found.state, found.message_id, found.duplicate_at) == (JobState.SENT, "provider-1", None)
        # What shows that Send events come through is a Send event.
        assert found.send_event_at == (LONG_AGO if kind == K.SENT else None)


def final_state(stage: Stage, job: ClaimedJob) -> dict[str, Any]:
    """All that events decide. Times of our own clock are told as: is it set."""
    found = stage.job(job)
    person = stage.subscriber(int(job.recipient[4:8]))
    suppression = stage.store.suppressions.covers(DEFAULT_TENANT, address(int(job.recipient[4:8])))
    return {
        "state": found.state,
        "message_id": found.message_id,
        "reason": found.reason,
        "duplicate": found.duplicate_at is not None,
        "marks": (found.send_event_at, found.delivered_at, found.bounced_at, found.complained_at),
        "rejected": found.rejected_at,
        "person": (person.status, person.bounce_type, person.bounce_subtype),
        "suppression": suppression and (suppression.reason, suppression.note),
    }


def told(job: ClaimedJob, number: int, kind: EventKind, attempt: int) -> DeliveryEvent:
    """The n-th event of a set: each has its own time and words."""
    when = LONG_AGO + timedelta(minutes=number)
    return event_of(job, kind, attempt=attempt, occurred_at=when, reason=f"{kind} of attempt {attempt}")


SETS = {
    "a complaint after delivery": [(K.SENT, 1), (K.DELIVERED, 1), (K.COMPLAINT, 1)],
    "a bounce and a complaint": [(K.SENT, 1), (K.DEFERRED, 1), (K.BOUNCE, 1), (K.COMPLAINT, 1)],
    "a reject": [(K.SENT, 1), (K.REJECT, 1)],
}
OLDER_SETS = {
    "an earlier attempt only": [(K.SENT, 1), (K.DELIVERED, 1)],
    "two copies": [(K.SENT, 1), (K.DELIVERED, 1), (K.SENT, 2)],
    "two copies, one bounced": [(K.BOUNCE, 1), (K.SENT, 2), (K.DELIVERED, 2)],
}


def ends(stage: Stage, kinds: list[tuple[EventKind, int]], jobs: Iterator[ClaimedJob]) -> list[Any]:
    """The end for each order of the events, each told twice."""
    found = []
    for order in permutations(range(len(kinds))):
        job = next(jobs)
        events = [told(job, n, *kinds[n]) for n in order]
        for event in [*events, *events]:
            stage.record(event)
        found.append(final_state(stage, job))
    return found


@pytest.mark.parametrize("name", SETS)
def test_every_order_of_events_ends_alike(stage: Stage, name: str) -> None:
    """All permutations, every event twice, end in one state of job, marks, subscriber and suppression."""
    stage.running(24)
    first, *rest = ends(stage, SETS[name], iter(stage.claim().claimed))
    assert all(end == first for end in rest)
    assert first["state"] == JobState.SENT
    assert not first["duplicate"]


@pytest.mark.parametrize("state", ["in doubt", "scheduled", "failed", "dead"])
@pytest.mark.parametrize("name", OLDER_SETS)
def test_every_order_of_events_of_two_attempts_ends_alike(stage: Stage, name: str, state: str) -> None:
    """Events of an earlier attempt too; the alarm is raised exactly when two attempts were accepted."""
    stage.running(6)
    for job in stage.claim().claimed:
        stage.settle(job, DEFERRED)
    second_attempts = stage.claim().claimed
    for job in second_attempts:
        STATES[state](stage, job)
    first, *rest = ends(stage, OLDER_SETS[name], iter(second_attempts))
    assert all(end == first for end in rest)
    assert first["state"] == JobState.SENT
    assert first["duplicate"] == ("two copies" in name)


@pytest.mark.parametrize("settled", [False, True])
def test_older_evidence_beside_a_newer_letter_is_an_alarm(stage: Stage, settled: bool) -> None:
    """Attempt 1 was accepted while attempt 2 is on the wire or sent: the books show a second copy."""
    mailout_id = stage.running()
    second = stage.second_attempt()
    if settled:
        stage.settle(second, ACCEPTED)
    assert stage.event(second, attempt=1) == EventVerdict.DUPLICATE_SEND
    assert stage.store.jobs.books(mailout_id).duplicates == 1


def test_the_same_event_twice(stage: Stage) -> None:
    """A second copy by the carrier's id or by the fact itself changes nothing."""
    stage.running()
    job = stage.claim_one()
    event = event_of(job)
    assert stage.record(event) == EventVerdict.APPLIED
    before = stage.job(job)
    same_id = event_of(job, K.COMPLAINT, event_id=event.event_id)
    same_fact = event_of(job, K.COMPLAINT, natural_key=event.natural_key)
    for copy in (event, same_id, same_fact):
        assert stage.record(copy) == EventVerdict.DUPLICATE_EVENT
    assert stage.job(job) == before
    assert stage.subscriber().status == SubscriberStatus.ACTIVE


def test_marks_are_counted_beside_the_states(stage: Stage) -> None:
    """Delivered, bounced, complained and rejected are marks on sent jobs: the sum of the states stays."""
    mailout_id = stage.running(4)
    kinds = (K.DELIVERED, K.BOUNCE, K.COMPLAINT, K.REJECT)
    for job, kind in zip(stage.claim().claimed, kinds, strict=True):
        stage.event(job, kind)
    books = stage.store.jobs.books(mailout_id)
    marks = (books.delivered, books.bounced, books.complained, books.rejected)
    assert (books.sent, *marks) == (4, 1, 1, 1, 1)


def test_a_permanent_bounce_ends_the_writing(stage: Stage) -> None:
    """The subscriber is bounced with its kind, and the address is suppressed for the tenant."""
    stage.running()
    job = stage.claim_one()
    stage.event(job, K.BOUNCE, bounce_subtype="NoEmail", reason="user unknown")
    person = stage.subscriber()
    assert person.status == SubscriberStatus.BOUNCED
    assert (person.bounce_type, person.bounce_subtype) == ("permanent", "NoEmail")
    suppression = stage.store.suppressions.covers(DEFAULT_TENANT, address(0))
    assert suppression is not None
    assert (suppression.reason, suppression.note) == (SuppressionReason.BOUNCE, "user unknown")


@pytest.mark.parametrize("kind", [BounceType.TRANSIENT, BounceType.UNDETERMINED])
def test_a_passing_bounce_suppresses_nobody(stage: Stage, kind: BounceType) -> None:
    """A full mailbox is no reason never to write again."""
    stage.running()
    stage.event(stage.claim_one(), K.BOUNCE, bounce_type=kind)
    assert stage.subscriber().status == SubscriberStatus.ACTIVE
    assert stage.store.suppressions.covers(DEFAULT_TENANT, address(0)) is None


def test_a_complaint_unsubscribes(stage: Stage) -> None:
    """Who calls it spam is not written to again."""
    stage.running()
    stage.event(stage.claim_one(), K.COMPLAINT)
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED


@pytest.mark.parametrize("job_id", [None, "nonsense", NOBODY])
def test_an_unknown_letter_is_kept_and_its_bounce_suppresses(stage: Stage, job_id: str | None) -> None:
    """A bounce of a letter that is not ours touches no job; the mailbox does not exist all the same."""
    stage.subscribe([0])
    event = event_of(
        None,
        K.BOUNCE,
        job_id=job_id,
        attempt=1 if job_id else None,
        recipients=("not an address", "USER0000@Example.com"),
        destinations=("user0000@example.COM", "somebody@example.com"),
    )
    assert stage.record(event) == EventVerdict.UNKNOWN
    assert stage.store.suppressions.covers(DEFAULT_TENANT, address(0)) is not None
    assert stage.subscriber().status == SubscriberStatus.BOUNCED
    assert len(stage.store.events.all()) == 1


@pytest.mark.parametrize(
    ("kind", "status"), [(K.BOUNCE, SubscriberStatus.BOUNCED), (K.COMPLAINT, SubscriberStatus.UNSUBSCRIBED)]
)
def test_an_unknown_letter_may_be_of_any_tenant(
    stage: Stage, kind: EventKind, status: SubscriberStatus
) -> None:
    """Nobody can tell who wrote to the person that complains, so nobody writes to them again."""
    make_tenant(stage.store, "second")
    for tenant_id in (DEFAULT_TENANT, "second"):
        stage.store.subscribers.upsert(tenant_id, [NewSubscriber(address(0)), NewSubscriber(address(1))])
    stage.record(event_of(None, kind, recipients=(address(0).text,), destinations=(address(0).text,)))
    for tenant_id in (DEFAULT_TENANT, "second", "third"):
        assert stage.store.suppressions.covers(tenant_id, address(0)) is not None
        assert stage.store.suppressions.covers(tenant_id, address(1)) is None
    for tenant_id in (DEFAULT_TENANT, "second"):
        found = [stage.store.subscribers.find(tenant_id, address(n)) for n in (0, 1)]
        assert [person.status for person in found if person] == [status, SubscriberStatus.ACTIVE]


@pytest.mark.parametrize("kind", [K.BOUNCE, K.COMPLAINT])
def test_whom_an_unknown_letter_was_not_addressed_to_is_not_suppressed(stage: Stage, kind: EventKind) -> None:
    """A receiving server writes into a bounce whom it likes: anybody's letters could be ended so."""
    stage.subscribe([0, 1])
    named = (address(0).text, address(1).text)
    stage.record(event_of(None, kind, recipients=named, destinations=(address(1).text,)))
    stage.record(event_of(None, kind, recipients=named, destinations=()))
    assert stage.store.suppressions.covers(DEFAULT_TENANT, address(0)) is None
    assert stage.subscriber(0).status == SubscriberStatus.ACTIVE
    assert stage.store.suppressions.covers(DEFAULT_TENANT, address(1)) is not None


def test_an_unknown_delivery_touches_nobody(stage: Stage) -> None:
    """It is kept, and that is all."""
    stage.subscribe([0])
    assert stage.record(event_of(None, K.DELIVERED, recipients=(address(0).text,))) == EventVerdict.UNKNOWN
    assert stage.store.suppressions.all() == []


def test_events_are_kept_word_for_word(stage: Stage) -> None:
    """What was told can be read again, newest first and by job."""
    stage.running(2)
    first, second = stage.claim().claimed
    event = event_of(first, K.BOUNCE, code="550", reason="нет такого ящика", raw={"bounce": {"x": [1, None]}})
    stage.record(event)
    stage.event(second)
    (kept,) = stage.store.events.all(job_id=first.id)
    assert kept == replace(event, destinations=())
    assert [e.job_id for e in stage.store.events.all()] == [second.id, first.id]
    assert len(stage.store.events.all(limit=1)) == 1


def test_a_canary_comes_back(stage: Stage) -> None:
    """The Send event of a canary shows that its route works, and no other; it touches no job."""
    start = stage.store.ledger.now()
    canaries = stage.store.canaries
    canary_id = str(uuid4())
    canaries.launch(canary_id, "here")
    assert canaries.last("here") is None
    canaries.accepted(canary_id, "provider-1")
    last = canaries.last("here")
    assert last is not None
    assert (last[0] >= start, last[1]) == (True, False)
    assert canaries.last("elsewhere") is None
    assert stage.record(event_of(None, K.SENT, canary=canary_id)) == EventVerdict.APPLIED
    assert canaries.last("here") == (last[0], True)


def test_an_unknown_canary_is_no_error(stage: Stage) -> None:
    """Somebody else's canary, or no name at all."""
    assert stage.record(event_of(None, K.SENT, canary="nonsense")) == EventVerdict.APPLIED


# -- who receives ----------------------------------------------------------------------------------


def receivers(stage: Stage) -> list[tuple[str, float, bool, bool]]:
    """Each row of notes: whose, for how many tens of seconds, whether of a queue, whether signed off."""
    rows = sorted(stage.store.event_route.listening().receivers, key=lambda row: (row.name, row.since))
    return [(row.name, (row.seen - row.since).total_seconds() // 10, row.durable, row.left) for row in rows]


def test_notes_of_one_receiver_are_one_row_until_a_gap(stage: Stage) -> None:
    """Fifteen seconds of silence are a break; a queue keeps what comes for days."""
    route = stage.store.event_route
    for name, durable in (("push", False), ("queue", True)):
        route.attend(name, durable=durable)
    pass_time(stage.store, 11)
    for name, durable in (("push", False), ("queue", True)):
        route.attend(name, durable=durable)
    pass_time(stage.store, 16)
    for name, durable in (("push", False), ("queue", True)):
        route.attend(name, durable=durable)
    assert receivers(stage) == [
        ("push", 1, False, False),
        ("push", 0, False, False),
        ("queue", 2, True, False),
    ]


def test_a_receiver_that_broke_begins_anew(stage: Stage) -> None:
    """However short the break was; hours of breaks leave one row, not thousands."""
    route = stage.store.event_route
    route.attend("one", durable=False)
    pass_time(stage.store, 11)
    route.attend("one", durable=False)
    for _ in range(3):
        pass_time(stage.store, 5)
        route.attend("one", durable=False, anew=True)
    assert receivers(stage) == [("one", 1, False, False), ("one", 0, False, False)]


def test_a_receiver_signs_off(stage: Stage) -> None:
    """Only one that is still there: a late goodbye does not bridge a silence."""
    route = stage.store.event_route
    route.attend("one", durable=False)
    route.attend("two", durable=False)
    pass_time(stage.store, 11)
    route.leave("one")
    pass_time(stage.store, 15)
    route.leave("two")
    route.leave("nobody")
    assert receivers(stage) == [("one", 1, False, True), ("two", 0, False, False)]


def test_a_topic_delivers_until_it_says_that_it_does_no_more(stage: Stage) -> None:
    """Known by a confirmation or by any message of it; one of several is enough."""
    route = stage.store.event_route
    assert not route.is_subscribed({"a", "b"})
    route.subscribed("a")
    route.subscribed("a")
    assert route.is_subscribed({"a", "b"})
    assert not route.is_subscribed({"b"})
    assert not route.is_subscribed(())
    route.unsubscribed("a")
    assert not route.is_subscribed({"a", "b"})
    route.subscribed("a")
    assert route.is_subscribed({"a"})


# -- what cannot be read ---------------------------------------------------------------------------


def unreadable(number: int) -> UnreadableEvent:
    return UnreadableEvent(f"sns-{number}", "arn:topic", "no JSON", b"\x00\xff{" + str(number).encode())


def test_what_cannot_be_read_is_kept_word_for_word(stage: Stage) -> None:
    """Once, however often it comes, the newest first; it touches no job."""
    stage.running()
    job = stage.claim_one()
    events = stage.store.events
    assert (events.keep_unreadable(unreadable(1)), events.keep_unreadable(unreadable(2))) == (True, True)
    assert not events.keep_unreadable(unreadable(1))
    second, first = events.unreadable()
    assert replace(first, received_at=None) == unreadable(1)
    assert (second.event_id, second.received_at is not None) == ("sns-2", True)
    assert (events.count_unreadable(), len(events.unreadable(limit=1))) == (2, 1)
    assert (stage.state(job), events.all()) == (JobState.SENDING, [])


def test_what_cannot_be_read_does_not_fill_the_disk(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stay."""
    for store in ("memory", "sql"):
        monkeypatch.setattr(f"sendonce.adapters.stores.{store}.events.MOST_UNREADABLE", 3)
    for number in range(5):
        stage.store.events.keep_unreadable(unreadable(number))
        pass_time(stage.store, 0.01)
    assert [event.event_id for event in stage.store.events.unreadable()] == ["sns-4", "sns-3", "sns-2"]
