"""Subscribers and suppressions: an import never undoes an opt-out, and what is graver wins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.events import EventKind
from sendonce.domain.people.people_columns import PeopleColumns
from sendonce.domain.people.subscribers import (
    DEFAULT_TENANT,
    Addition,
    ImportCounts,
    NewSubscriber,
    SubscriberStatus,
)
from sendonce.domain.people.suppressions import EVERYBODY, NewSuppression, SuppressionReason
from tests.conformance.backdoor import audit, pass_time
from tests.conformance.stage import ACCEPTED, Stage, address, people

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
    assert audit(stage.store) == [("the recipient", "undo unsubscription", address(0).text)]


def test_only_the_letter_that_unsubscribed_can_undo_it(stage: Stage) -> None:
    """Whoever holds another letter to the same person, older or newer, cannot."""
    older, own, newer = (stage.claim_one() for _ in range(3) if stage.running())
    stage.store.suppressions.unsubscribe(own.id)
    for letter in (older, newer):
        stage.store.suppressions.unsubscribe(letter.id)
        assert not stage.store.suppressions.undoable(letter.id)
        assert stage.store.suppressions.resubscribe(letter.id) == address(0).text
        assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    assert stage.store.suppressions.undoable(own.id)
    stage.store.suppressions.resubscribe(own.id)
    assert stage.subscriber().status == SubscriberStatus.ACTIVE


def test_an_unsubscription_can_be_undone_for_an_hour(stage: Stage) -> None:
    """Clicking the same link again does not begin the hour anew."""
    stage.running()
    job = stage.claim_one()
    stage.store.suppressions.unsubscribe(job.id)
    pass_time(stage.store, 3500)
    assert stage.store.suppressions.undoable(job.id)
    stage.store.suppressions.unsubscribe(job.id)
    pass_time(stage.store, 200)
    assert not stage.store.suppressions.undoable(job.id)
    stage.store.suppressions.resubscribe(job.id)
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    assert audit(stage.store) == []


@pytest.mark.parametrize("how", ["a list", "a list that says bounced", "a suppression"])
def test_what_others_say_too_cannot_be_undone(stage: Stage, how: str) -> None:
    """Who unsubscribed by a letter and is denied by another source as well stays out."""
    stage.running()
    job = stage.claim_one()
    stage.store.suppressions.unsubscribe(job.id)
    if how == "a suppression":
        stage.store.suppressions.add(DEFAULT_TENANT, address(0), R.UNSUBSCRIBED)
    else:
        reason = R.UNSUBSCRIBED if how == "a list" else R.BOUNCE
        stage.store.subscribers.import_people(DEFAULT_TENANT, columns([0], {0: reason}))
    stage.store.suppressions.resubscribe(job.id)
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    assert stage.store.suppressions.covers(DEFAULT_TENANT, address(0)) is not None


def test_an_erased_persons_letter_undoes_nothing(stage: Stage) -> None:
    """Nor does it after the keys were rotated; a person who stays may still undo then."""
    stage.running(2)
    gone, stays = stage.claim(limit=2).claimed
    for job in (gone, stays):
        stage.store.suppressions.unsubscribe(job.id)
    stage.store.people.erase(parse_address(gone.recipient), "jane")
    stage.store.keys.rotate("jane")
    assert not stage.store.suppressions.undoable(gone.id)
    stage.store.suppressions.resubscribe(gone.id)
    assert stage.store.suppressions.covers("somebody-else", parse_address(gone.recipient)) is not None
    stage.store.suppressions.resubscribe(stays.id)
    assert stage.store.suppressions.covers(DEFAULT_TENANT, parse_address(stays.recipient)) is None


def columns(numbers: Sequence[int], denied: dict[int, SuppressionReason]) -> PeopleColumns:
    """People of a list, and whom it says must not be written to."""
    found = PeopleColumns.of(people(numbers))
    for number, reason in denied.items():
        found.deny(address(number).key, address(number).text, reason)
    return found


def test_who_left_elsewhere_comes_in_as_who_left(stage: Stage) -> None:
    """New people are unsubscribed or bounced, suppressed for the tenant, and counted."""
    told = columns([0, 1, 2, 3], {1: R.UNSUBSCRIBED, 2: R.BOUNCE, 3: R.COMPLAINT})
    counts = stage.store.subscribers.import_people(DEFAULT_TENANT, told, source="import of old.csv")
    assert counts == ImportCounts(inserted=4, unsubscribed=2, bounced=1)
    statuses = [stage.subscriber(number).status for number in range(4)]
    assert statuses == ["active", "unsubscribed", "bounced", "unsubscribed"]
    found = {s.address: (s.scope, s.reason, s.note) for s in stage.store.suppressions.all()}
    assert found == {
        address(number).text: (DEFAULT_TENANT, reason, "import of old.csv")
        for number, reason in ((1, R.UNSUBSCRIBED), (2, R.BOUNCE), (3, R.COMPLAINT))
    }


def test_who_left_elsewhere_gets_no_more_letters_from_here(stage: Stage) -> None:
    """An active subscriber becomes what the list says, once; planned letters are skipped."""
    stage.running(3)
    told = columns([0, 1, 2], {0: R.UNSUBSCRIBED, 1: R.BOUNCE})
    counts = stage.store.subscribers.import_people(DEFAULT_TENANT, told)
    assert counts == ImportCounts(updated=2, unchanged=1, unsubscribed=1, bounced=1, deactivated=2)
    assert [stage.subscriber(n).status for n in range(3)] == ["unsubscribed", "bounced", "active"]
    assert stage.subscriber(0).status_updated_at is not None
    assert [job.recipient for job in stage.claim().claimed] == [address(2).text]
    again = stage.store.subscribers.import_people(DEFAULT_TENANT, told)
    assert again == ImportCounts(unchanged=3, unsubscribed=1, bounced=1)


def test_only_opt_outs_by_letter_count_for_a_mailout(stage: Stage) -> None:
    """Whoever left elsewhere, as a list tells later, did not leave because of this letter."""
    mailout = stage.running(3)
    for job in stage.claim().claimed:
        stage.settle(job, ACCEPTED)
    stage.store.suppressions.unsubscribe(stage.store.jobs.list(dispatch_id=mailout)[0].id)
    stage.store.subscribers.import_people(
        DEFAULT_TENANT, columns([0, 1, 2], {0: R.UNSUBSCRIBED, 1: R.UNSUBSCRIBED})
    )
    stage.store.suppressions.add(DEFAULT_TENANT, address(2), R.UNSUBSCRIBED, "a file")
    assert stage.store.jobs.count_unsubscribed(mailout) == 1


def test_a_list_never_takes_anybody_up(stage: Stage) -> None:
    """Bounced there does not lift unsubscribed here; the graver reason of a suppression stays."""
    stage.running()
    job = stage.claim_one()
    stage.store.suppressions.unsubscribe(job.id)
    stage.event(job, EventKind.COMPLAINT)
    stage.store.subscribers.import_people(DEFAULT_TENANT, columns([0], {0: R.BOUNCE}))
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    (only,) = stage.store.suppressions.all()
    assert only.reason == R.COMPLAINT
    stage.store.subscribers.import_people(DEFAULT_TENANT, columns([0], {}))
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED


def test_spellings_of_a_mailbox_are_denied_together(stage: Stage) -> None:
    """Two lines of one mailbox with two reasons make one suppression, the graver one."""
    told = PeopleColumns()
    for raw, reason in (("j.doe@gmail.com", R.BOUNCE), ("jdoe+x@gmail.com", R.UNSUBSCRIBED)):
        spelled = parse_address(raw)
        told.deny(spelled.key, spelled.text, reason)
    stage.store.subscribers.import_people(DEFAULT_TENANT, told)
    (only,) = stage.store.suppressions.all()
    assert only.reason == R.BOUNCE


def test_a_dry_run_denies_nobody(stage: Stage) -> None:
    stage.subscribe([0])
    told = columns([0, 1], {0: R.UNSUBSCRIBED, 1: R.BOUNCE})
    dry = stage.store.subscribers.import_people(DEFAULT_TENANT, told, dry_run=True)
    assert stage.subscriber(0).status == SubscriberStatus.ACTIVE
    assert stage.store.suppressions.all() == []
    assert dry == stage.store.subscribers.import_people(DEFAULT_TENANT, told)


def test_a_person_is_added(stage: Stage) -> None:
    """With name and consent; a second time only what is given is noted, and no attribute is lost."""
    add = stage.store.subscribers.add
    person = NewSubscriber(address(0), "Ann", {}, "asked at the fair")
    assert add(DEFAULT_TENANT, person, "jane") == Addition.ADDED
    stage.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(address(0), None, {"city": "Riga"})])
    assert add(DEFAULT_TENANT, NewSubscriber(address(0), "Anna"), "jane") == Addition.KNOWN
    found = stage.subscriber()
    assert (found.name, found.consent, found.attributes) == ("Anna", "asked at the fair", {"city": "Riga"})
    assert found.status == SubscriberStatus.ACTIVE
    assert audit(stage.store) == [("jane", "add subscriber", address(0).text)] * 2


@pytest.mark.parametrize("scope", [DEFAULT_TENANT, EVERYBODY])
def test_an_opt_out_stays_one_when_added(stage: Stage, scope: str) -> None:
    """Suppressed under any spelling, known or not, with a note of consent or without."""
    stage.store.suppressions.add(scope, parse_address("user0000+x@example.com"), R.UNSUBSCRIBED)
    for _ in range(2):
        for consent in (None, "says so"):
            person = NewSubscriber(address(0), "Ann", {}, consent)
            assert stage.store.subscribers.add(DEFAULT_TENANT, person, "jane") == Addition.SUPPRESSED
        stage.subscribe([0])
        assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    assert audit(stage.store) == []


def test_who_left_comes_back_with_a_new_consent_only(stage: Stage) -> None:
    """Once the suppression is lifted on purpose, and somebody writes down how they know."""
    stage.running()
    stage.store.suppressions.unsubscribe(stage.claim_one().id)
    stage.store.suppressions.remove(DEFAULT_TENANT, address(0), "jane")
    add = stage.store.subscribers.add
    assert add(DEFAULT_TENANT, NewSubscriber(address(0)), "jane") == Addition.LEFT
    assert stage.subscriber().status == SubscriberStatus.UNSUBSCRIBED
    assert add(DEFAULT_TENANT, NewSubscriber(address(0), None, {}, "wrote on 1 May"), "jane") == Addition.BACK
    assert (stage.subscriber().status, stage.subscriber().consent) == ("active", "wrote on 1 May")


def test_erasing_takes_the_consent_along(stage: Stage) -> None:
    person = NewSubscriber(address(0), "Ann", {}, "by phone, +371 2000000")
    stage.store.subscribers.add(DEFAULT_TENANT, person, "jane")
    stage.store.people.erase(address(0), "jane")
    assert stage.store.people.file_of(address(0)).subscribers == []
    assert not [subject for _, _, subject in audit(stage.store) if address(0).text in subject]


def test_consent_comes_along_and_what_is_noted_here_stays(stage: Stage) -> None:
    told = columns([0], {})
    for note in ("by phone", "by letter"):
        told.consents = {address(0).key: note}
        stage.store.subscribers.import_people(DEFAULT_TENANT, told)
    assert stage.subscriber().consent == "by phone"


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


def test_many_are_suppressed_at_once(stage: Stage) -> None:
    """Each in its scope, for its reason; a repeat and another spelling are known."""
    store = stage.store.suppressions
    assert store.add_all([]) == 0
    store.add(DEFAULT_TENANT, address(1), R.UNSUBSCRIBED)
    given = [
        NewSuppression(DEFAULT_TENANT, address(1), R.COMPLAINT, "a file"),
        NewSuppression(EVERYBODY, address(1), R.BOUNCE),
        NewSuppression(DEFAULT_TENANT, address(2), R.BOUNCE),
        NewSuppression(DEFAULT_TENANT, parse_address("user0002+x@example.com"), R.UNSUBSCRIBED),
    ]
    assert store.add_all(given) == 2
    assert sorted((s.address, s.scope, s.reason) for s in store.all()) == [
        (address(1).text, EVERYBODY, R.BOUNCE),
        (address(1).text, DEFAULT_TENANT, R.COMPLAINT),
        (address(2).text, DEFAULT_TENANT, R.BOUNCE),
    ]


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
