"""Rotating the keys: every hash moves, erased people included, and who was left in peace stays so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.people.people_columns import suppression_keys
from sendonce.domain.people.peppers import rekeyed
from sendonce.domain.people.privacy import erased_name, is_erased, rekeyed_name
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber, SubscriberStatus
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.flows.people.unsubscribe import unsubscribe
from tests.conformance.stage import ACCEPTED, Stage, event_of
from tests.conformance.test_privacy import JANE, erase, everything, letter_to_jane, subscribe

JOHN = parse_address("john@example.com")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=5))
def test_a_stored_key_moves_to_what_the_longer_pepper_makes(links: list[bytes]) -> None:
    """Hashing what is stored comes to the same as hashing the address anew."""
    key = suppression_key(JANE.key, links[0])
    name = erased_name(JANE.key, links[0])
    for count in range(1, len(links)):
        key, name = rekeyed(key, links[count]), rekeyed_name(name, links[count])
    pepper = b"".join(links)
    assert key == suppression_key(JANE.key, pepper) == suppression_keys([JANE.key], pepper)[0]
    assert name == erased_name(JANE.key, pepper)


def test_an_erased_person_stays_suppressed_over_two_rotations(stage: Stage) -> None:
    """Nobody knows the address any more, and an import of it still brings nobody back."""
    subscribe(stage)
    erase(stage)
    for _ in range(2):
        stage.store.keys.rotate("operator")
        assert stage.store.suppressions.covers(DEFAULT_TENANT, JANE) is not None
        subscribe(stage)
        person = stage.store.subscribers.find(DEFAULT_TENANT, JANE)
        assert person is not None
        assert person.status == SubscriberStatus.UNSUBSCRIBED
    assert not erase(stage).suppressed


def test_no_key_of_before_is_left(stage: Stage) -> None:
    """Who has the former pepper finds nobody in the tables."""
    letter_to_jane(stage)
    stage.store.suppressions.add(DEFAULT_TENANT, JOHN, SuppressionReason.MANUAL)
    erase(stage)
    before = stage.store.ledger.identity().pepper
    hashes = [suppression_key(a.key, before) for a in (JANE, JOHN)] + [erased_name(JANE.key, before)]
    assert all(each in everything(stage.store) for each in hashes)
    assert stage.store.keys.rotate("operator") == 2
    assert not any(each in everything(stage.store) for each in hashes)
    assert stage.store.ledger.identity().pepper.startswith(before)


def test_what_is_planned_is_still_held_back(stage: Stage) -> None:
    """A suppression that comes after the rotation finds the jobs that were planned before it."""
    job = letter_to_jane(stage)
    stage.store.keys.rotate("operator")
    stage.store.suppressions.add(DEFAULT_TENANT, JANE, SuppressionReason.MANUAL)
    assert not stage.claim().claimed
    skipped = stage.store.jobs.get(job.id)
    assert skipped is not None
    assert skipped.state == JobState.SKIPPED


def test_an_unsubscribe_link_of_before_works(stage: Stage) -> None:
    job = letter_to_jane(stage)
    stage.store.keys.rotate("operator")
    assert unsubscribe(stage.store, job.id) is not None
    assert stage.store.suppressions.covers(DEFAULT_TENANT, JANE) is not None


def test_a_late_copy_of_an_erased_persons_event_is_still_a_copy(stage: Stage) -> None:
    """The hash in place of its natural key moved with the others."""
    letter_to_jane(stage)
    claimed = stage.claim_one()
    stage.settle(claimed, ACCEPTED)
    told = event_of(claimed)
    stage.store.events.record(told)
    erase(stage)
    stage.store.keys.rotate("operator")
    stage.store.events.record(told)
    assert len(stage.store.events.all()) == 1
    (job,) = stage.store.jobs.list()
    assert is_erased(job.recipient)


def test_a_subscriber_of_before_is_found_and_shown(stage: Stage) -> None:
    letter_to_jane(stage)
    stage.store.keys.rotate("operator")
    file = stage.store.people.file_of(JANE)
    assert len(file.subscribers) == len(file.letters) == 1
    counts = stage.store.subscribers.upsert(
        DEFAULT_TENANT, [NewSubscriber(JANE, "Jane D.", {"city": "Riga"})]
    )
    assert counts.unchanged == 1


def test_the_register_of_secrets(stage: Stage) -> None:
    """A secret is noted once; a forgotten one comes back when it signs again."""
    keys = stage.store.keys
    for fingerprint in ("aa", "bb", "aa"):
        keys.note_used(fingerprint)
    assert list(keys.used()) == ["aa", "bb"]
    assert keys.forget("aa", "operator")
    assert not keys.forget("aa", "operator")
    assert list(keys.used()) == ["bb"]
    keys.note_used("aa")
    assert list(keys.used()) == ["bb", "aa"]


def test_the_secret_of_links_is_made_once_and_kept(stage: Stage) -> None:
    """A look makes none; every call after the first gets the same."""
    keys = stage.store.keys
    assert list(keys.link_secrets()) == []
    first = keys.make_link_secret()
    assert len(first) == 32
    assert (keys.make_link_secret(), list(keys.link_secrets())) == (first, [first])


def test_a_rotation_puts_a_new_secret_before_the_former_ones(stage: Stage) -> None:
    """New letters are signed with it, links in old letters work; where none is kept, none is made."""
    keys = stage.store.keys
    keys.rotate("operator")
    assert list(keys.link_secrets()) == []
    first = keys.make_link_secret()
    keys.rotate("operator")
    second = keys.make_link_secret()
    assert list(keys.link_secrets()) == [second, first]


def test_many_first_letters_share_one_secret(shared_stage: Stage) -> None:
    """Workers that start together sign with the same."""
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: shared_stage.store.keys.make_link_secret(), range(6)))
    assert len(set(made)) == 1
