"""Make letters that were planned some time ago quick to find by person, for `show` and `erase`."""

from __future__ import annotations

from sendonce.ports.people import PeopleStore

MOST_AT_ONCE = 20


def shelve_letters(store: PeopleStore) -> None:
    """One round, of bounded length: the chores of a worker wait for each other."""
    for _ in range(MOST_AT_ONCE):
        if not store.people.shelve():
            return
