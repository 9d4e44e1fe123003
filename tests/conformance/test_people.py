"""Subscribers and suppressions: an import never undoes an opt-out, and what is graver wins."""

from __future__ import annotations

from itertools import permutations

import pytest

from sendonce.domain.addresses import parse_address
from sendonce.domain.events import EventKind
from sendonce.domain.subscribers import DEFAULT_TENANT, ImportCounts, NewSubscriber, SubscriberStatus
from sendonce.domain.suppressions import EVERYBODY, SuppressionReason
from tests.conformance.backdoor import audit
from tests.conformance.stage import Stage, address, people

R = SuppressionReason


def test_an_import_counts_what_it_did(stage: Stage) -> None:
    """Inserted, updated and unchanged add up to the people given, repeats included."""
    upsert = stage.store.subscribers.upsert
    assert upsert(DEFAULT_TENANT, people([1, 2])) == ImportCounts(inserted=2)
    renamed = NewSubscriber(address(2), name="Another", attributes={"city": "Riga"})
    again = [*people([1]), renamed, *people([3]), *people([3])]
    assert upsert(DEFAULT_TENANT, again) == ImportCounts(inserted=1, updated=1, unchanged=2)
    assert upsert(DEFAULT_TENANT, []) == ImportCounts()


def test_the_order_of_attributes_is_no_change(stage: Stage) -> None:
    """The same attributes in another order leave the subscriber unchanged."""
    for attributes in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}):
        counts = stage.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(address(1), None, attributes)])
    assert counts == ImportCounts(unchanged=1)


def test_spellings_of_one_address_are_one_subscriber(stage: Stage) -> None:
    """The canonical address is the key; the first spelling stays."""
    for raw in ("Jane@Example.com", "jane@example.com", '"jane"@EXAMPLE.com'):
        stage.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(parse_address(raw))])
    (only,) = stage.store.subscribers.all(DEFAULT_TENANT)
    assert only.email == "Jane@example.com"


def test_an_import_without_a_name_keeps_the_name(stage: Stage) -> None:
    """Names are added and changed, never erased by an import."""
    stage.subscribe([1])
    stage.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(address(1))])
    assert stage.subscriber(1).name == "User 1"


@pytest.mark.parametrize("end", ["unsubscribe", "bounce", "complaint"])
def test_an_import_never_resurrects(stage: Stage, end: str) -> None:
    """Who opted out, bounced or complained stays so, whatever a file says."""
    stage.running()
    job = stage.claim_one()
    if end == "unsubscribe":
        stage.store.suppressions.unsubscribe(job.id)
    else:
        stage.event(job, EventKind(end))
    before = stage.subscriber().status
    assert before != SubscriberStatus.ACTIVE
    stage.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(address(0), name="Back again")])
    assert stage.subscriber().status == before
    assert stage.subscriber().name == "Back again"


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        ({DEFAULT_TENANT: R.BOUNCE}, SubscriberStatus.BOUNCED),
        ({DEFAULT_TENANT: R.BOUNCE, EVERYBODY: R.BOUNCE}, SubscriberStatus.BOUNCED),
        ({DEFAULT_TENANT: R.BOUNCE, EVERYBODY: R.MANUAL}, SubscriberStatus.UNSUBSCRIBED),
        ({EVERYBODY: R.COMPLAINT, DEFAULT_TENANT: R.BOUNCE}, SubscriberStatus.UNSUBSCRIBED),
        ({"somebody-else": R.MANUAL}, SubscriberStatus.ACTIVE),
    ],
)
def test_the_suppressed_are_not_imported_as_active(
    stage: Stage, reasons: dict[str, SuppressionReason], status: SubscriberStatus
) -> None:
    """A new subscriber who is suppressed already, under another spelling too, comes in as what they are."""
    for scope, reason in reasons.items():
        stage.store.suppressions.add(scope, parse_address("user0001+tag@example.com"), reason)
    stage.subscribe([1])
    assert stage.subscriber(1).status == status


def test_subscribers_are_listed_in_pages(stage: Stage) -> None:
    """In the order of their addresses, by status, continuing after an address."""
    stage.running(4)
    stage.store.suppressions.unsubscribe(stage.claim_one().id)
    first = stage.store.subscribers.all(DEFAULT_TENANT, limit=2)
    rest = stage.store.subscribers.all(DEFAULT_TENANT, after=first[-1].email, limit=9)
    assert [p.email for p in (*first, *rest)] == [address(n).text for n in range(4)]
    active = stage.store.subscribers.all(DEFAULT_TENANT, status=SubscriberStatus.ACTIVE)
    assert len(active) == 3
    assert stage.store.subscribers.count(DEFAULT_TENANT) == {"active": 3, "unsubscribed": 1}
    assert stage.store.subscribers.all("somebody-else") == []


def test_unsubscribing_from_a_letter(stage: Stage) -> None:
    """The address is suppressed for the tenant and the subscriber is out, as often as it is clicked."""
    stage.running()
    job = stage.claim_one()
    for _ in range(2):
        assert stage.store.suppressions.unsubscribe(job.id) == address(0).text
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    (suppression,) = stage.store.suppressions.all()
    assert (suppression.scope, suppression.reason) == (DEFAULT_TENANT, R.UNSUBSCRIBED)


def test_an_unsubscription_can_be_undone(stage: Stage) -> None:
    """Undo makes the subscriber active again and lifts the suppression."""
    stage.running()
    job = stage.claim_one()
    stage.store.suppressions.unsubscribe(job.id)
    assert stage.store.suppressions.resubscribe(job.id) == address(0).text
    assert stage.subscriber().status == SubscriberStatus.ACTIVE
    assert stage.store.suppressions.all() == []


@pytest.mark.parametrize("kind", [EventKind.BOUNCE, EventKind.COMPLAINT])
@pytest.mark.parametrize("event_first", [True, False])
def test_undo_does_not_lift_what_is_worse(stage: Stage, kind: EventKind, event_first: bool) -> None:
    """A bounce or complaint stays, whether it came before or after the unsubscription."""
    stage.running()
    job = stage.claim_one()
    steps = [lambda: stage.event(job, kind), lambda: stage.store.suppressions.unsubscribe(job.id)]
    for step in steps if event_first else reversed(steps):
        step()
    stage.store.suppressions.resubscribe(job.id)
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    assert stage.store.suppressions.covers(DEFAULT_TENANT, address(0)) is not None


def test_the_graver_reason_wins_in_any_order(stage: Stage) -> None:
    """Of all reasons told for an address, the gravest stands in the end."""
    for number, order in enumerate(permutations(R)):
        added = [stage.store.suppressions.add(EVERYBODY, address(number), reason) for reason in order]
        assert added == [True, False, False, False]
        found = stage.store.suppressions.covers(DEFAULT_TENANT, address(number))
        assert found is not None
        assert found.reason == R.MANUAL


def test_a_suppression_can_be_removed(stage: Stage) -> None:
    """By scope, once, with an entry in the audit log."""
    store = stage.store.suppressions
    store.add(EVERYBODY, address(1), R.MANUAL)
    assert not store.remove(DEFAULT_TENANT, address(1), "jane")
    assert [store.remove(EVERYBODY, address(1), "jane") for _ in range(2)] == [True, False]
    assert store.covers(DEFAULT_TENANT, address(1)) is None
    assert audit(stage.store) == [("jane", "unsuppress", address(1).text)]


def test_the_global_suppression_is_told_first(stage: Stage) -> None:
    """Where both deny, the one for everybody is the answer."""
    stage.store.suppressions.add(DEFAULT_TENANT, address(1), R.BOUNCE)
    stage.store.suppressions.add(EVERYBODY, address(1), R.MANUAL)
    found = stage.store.suppressions.covers(DEFAULT_TENANT, address(1))
    assert found is not None
    assert found.scope == EVERYBODY


def test_suppressions_are_listed_in_pages(stage: Stage) -> None:
    """All of them, each once."""
    for number in range(5):
        stage.store.suppressions.add(EVERYBODY, address(number), R.MANUAL, note=f"note {number}")
    first = stage.store.suppressions.all(limit=3)
    rest = stage.store.suppressions.all(after=(first[-1].key, first[-1].scope))
    assert {s.address for s in (*first, *rest)} == {address(n).text for n in range(5)}
    assert len(rest) == 2
