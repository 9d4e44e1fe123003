"""One person's letters are found wherever they lie: on a shelf, on none yet, after a change of keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from sendonce.adapters.stores.sql import person_index, planning
from sendonce.domain.people.privacy import is_erased
from sendonce.flows.people.shelve_letters import shelve_letters
from tests.conformance.stage import Stage, address

PEOPLE = 5


@pytest.fixture(autouse=True)
def small_shelves(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of ten jobs, and at once."""
    monkeypatch.setattr(person_index, "SHELF", 10)
    monkeypatch.setattr(person_index, "CHUNK", 3)
    monkeypatch.setattr(person_index, "SETTLED_AFTER", timedelta(hours=-1))
    return


@pytest.fixture
def mailouts(shared_stage: Stage) -> Stage:
    """Five of them: two shelves hold the letters of four, and those of the fifth lie beside."""
    for _ in range(5):
        shared_stage.running(PEOPLE)
    return shared_stage


def letters_to(stage: Stage, number: int) -> int:
    return len(stage.store.people.file_of(address(number)).letters)


def test_letters_are_found_on_shelves_and_beside_them(mailouts: Stage) -> None:
    assert [letters_to(mailouts, n) for n in range(PEOPLE)] == [5] * PEOPLE
    assert mailouts.store.people.shelve()
    assert [letters_to(mailouts, n) for n in range(PEOPLE)] == [5] * PEOPLE
    shelve_letters(mailouts.store)
    assert not mailouts.store.people.shelve()
    assert [letters_to(mailouts, n) for n in range(PEOPLE)] == [5] * PEOPLE
    assert letters_to(mailouts, 99) == 0


def test_letters_on_shelves_are_erased(mailouts: Stage) -> None:
    shelve_letters(mailouts.store)
    assert mailouts.store.people.erase(address(2), "jane").letters == 5
    jobs = mailouts.store.jobs.list(limit=100)
    assert sum(is_erased(job.recipient) for job in jobs) == 5
    assert letters_to(mailouts, 2) == 5


def test_new_keys_empty_the_shelves(mailouts: Stage) -> None:
    shelve_letters(mailouts.store)
    mailouts.store.keys.rotate("jane")
    assert letters_to(mailouts, 1) == 5
    shelve_letters(mailouts.store)
    assert letters_to(mailouts, 1) == 5


def test_keys_that_are_rotated_meanwhile_stop_a_shelf(
    mailouts: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entries would be of the former keys."""
    real = person_index.hold_pepper
    left = ["once"]

    def rotate_first(*args: object) -> None:
        if left:
            left.pop()
            monkeypatch.setattr(person_index, "pepper_in_force", lambda *_: b"others")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(person_index, "hold_pepper", rotate_first)
    assert not mailouts.store.people.shelve()
    assert letters_to(mailouts, 1) == 5


def test_jobs_from_before_the_cursor_are_found(mailouts: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was ahead is set back: ids are given that lie behind the last shelf."""
    shelve_letters(mailouts.store)
    real = planning.time_ordered_ids
    monkeypatch.setattr(planning, "time_ordered_ids", lambda n, ms: real(n, ms - 86_400_000))
    mailouts.running(PEOPLE)
    assert [letters_to(mailouts, n) for n in range(PEOPLE)] == [6] * PEOPLE
    shelve_letters(mailouts.store)
    assert [letters_to(mailouts, n) for n in range(PEOPLE)] == [6] * PEOPLE


def test_fresh_jobs_wait_for_those_that_may_come_behind_them(
    mailouts: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_index, "SETTLED_AFTER", timedelta(hours=1))
    assert not mailouts.store.people.shelve()
