"""An import from file to store: every line is counted once, and nobody who left comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.sources import csv_records, fingerprints, subscribers_csv
from sendonce.adapters.sources.fingerprints import Fingerprints
from sendonce.adapters.sources.subscribers_csv import read_subscribers
from sendonce.adapters.stores.sql.import_batches import ROWS_OF_STATEMENT
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.people_columns import PeopleColumns
from sendonce.domain.people.subscribers import (
    DEFAULT_TENANT,
    BadRow,
    ImportCounts,
    NewSubscriber,
    Subscriber,
    SubscriberStatus,
)
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.errors import NotFound, Unavailable
from sendonce.flows.people.import_subscribers import MOST_SHOWN, ImportReport, import_subscribers
from sendonce.ports.store import Store


def run(store: Store, path: Path, *, dry_run: bool = False) -> tuple[ImportReport, list[BadRow]]:
    rejected: list[BadRow] = []
    report = import_subscribers(
        store.subscribers,
        DEFAULT_TENANT,
        read_subscribers(path),
        Fingerprints(),
        reject=rejected.append,
        dry_run=dry_run,
    )
    return report, rejected


def people(store: Store) -> list[Subscriber]:
    return list(store.subscribers.all(DEFAULT_TENANT, limit=100_000))


def new(address: str, name: str | None = None, **attributes: str) -> NewSubscriber:
    return NewSubscriber(parse_address(address), name, attributes)


MIXED = """email,name,city
ann@example.com,Ann,Riga
bob@example.com,Bob,
not an address,X,
ANN@example.com,Anna,Oslo
cyd@example.com,,
gone@example.com,Gone,
left@example.com,Left,
new+tag@example.com,New,
"""


def prepare(store: Store) -> None:
    """Bob is known by another name, Cyd as the file has her; Left has left, New is suppressed."""
    known = [new("bob@example.com", "Robert"), new("cyd@example.com", "Cyd"), new("left@example.com", "Left")]
    store.subscribers.upsert(DEFAULT_TENANT, known)
    store.suppressions.add(EVERYBODY, parse_address("new@example.com"), SuppressionReason.BOUNCE)
    store.suppressions.add(DEFAULT_TENANT, parse_address("gone@example.com"), SuppressionReason.COMPLAINT)


def test_every_line_is_counted_once(store: Store, tmp_path: Path) -> None:
    """Inserted, updated, unchanged, duplicate and invalid; the first line of an address counts."""
    prepare(store)
    path = tmp_path / "list.csv"
    path.write_text(MIXED)
    report, rejected = run(store, path)
    assert report.counts == ImportCounts(inserted=3, updated=1, unchanged=2)
    assert (report.duplicates, report.invalid) == (1, 1)
    assert [row.line for row in rejected] == [4]
    found = {person.email: (person.name, str(person.status), person.attributes) for person in people(store)}
    assert found["ann@example.com"] == ("Ann", "active", {"city": "Riga"})
    assert found["bob@example.com"][0] == "Bob"
    assert found["cyd@example.com"][0] == "Cyd"
    assert found["gone@example.com"][1] == "unsubscribed"
    assert found["new+tag@example.com"][1] == "bounced"


def test_a_dry_run_tells_the_same_and_does_nothing(store: Store, tmp_path: Path) -> None:
    prepare(store)
    path = tmp_path / "list.csv"
    path.write_text(MIXED)
    before = people(store)
    dry, _ = run(store, path, dry_run=True)
    assert people(store) == before
    wet, _ = run(store, path)
    assert dry == wet
    again, _ = run(store, path)
    assert again.counts == ImportCounts(unchanged=6)
    assert again.duplicates == 1


def test_a_list_longer_than_a_statement(shared_store: Store, tmp_path: Path) -> None:
    """Duplicates are found over the whole file, and a repeated import changes nothing."""
    count = 2 * ROWS_OF_STATEMENT + 17
    lines = [f"user{n}@example.com,User {n},{'x' * 60}" for n in range(count)]
    path = tmp_path / "list.csv"
    path.write_text("\n".join(["email,name,note", *lines, *lines[:50]]))
    first, _ = run(shared_store, path)
    assert (first.counts, first.duplicates) == (ImportCounts(inserted=count), 50)
    second, _ = run(shared_store, path)
    assert (second.counts, second.duplicates) == (ImportCounts(unchanged=count), 50)
    assert shared_store.subscribers.count(DEFAULT_TENANT) == {"active": count}


def test_a_line_far_below_can_still_say_no(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two lines in different chunks the one that denies wins, while each line is counted once."""
    monkeypatch.setattr(csv_records, "_BLOCK", 40)
    monkeypatch.setattr(subscribers_csv, "CHUNK", 1)
    lines = [
        "ann@example.com,active",
        *(f"p{n}@example.com,active" for n in range(9)),
        "ann@example.com,unsubscribed",
    ]
    path = tmp_path / "list.csv"
    path.write_text("\n".join(["email,status", *lines, "p0@example.com,active"]) + "\n")
    report, _ = run(store, path)
    assert report.counts == ImportCounts(inserted=10, unsubscribed=1)
    assert report.duplicates == 2
    assert store.subscribers.count(DEFAULT_TENANT) == {"active": 9, "unsubscribed": 1}
    again, _ = run(store, path)
    assert again.counts == ImportCounts(unchanged=10)


def test_odd_values_arrive_as_they_are(store: Store, tmp_path: Path) -> None:
    """Tabs, backslashes, quotes, braces and emoji in names and attributes."""
    odd = 'a\\tb "c" {d} \\N $$ %s 🌍 O\'Neil'
    store.subscribers.import_people(
        DEFAULT_TENANT,
        PeopleColumns.of([NewSubscriber(parse_address("a@example.com"), odd, {"note": odd, "n\n": "\t"})]),
    )
    (person,) = people(store)
    assert (person.name, person.attributes) == (odd, {"note": odd, "n\n": "\t"})
    assert store.subscribers.attribute_names(DEFAULT_TENANT) == ["n\n", "note"]


def test_nobody_joins_the_list_of_a_tenant_that_is_not_there(shared_store: Store) -> None:
    """The table has no foreign key for it: the import itself looks."""
    with pytest.raises(NotFound, match="There is no tenant 'nobody'"):
        shared_store.subscribers.upsert("nobody", [new("a@example.com")])
    assert shared_store.subscribers.count("nobody") == {}


@pytest.mark.parametrize("status", [SubscriberStatus.UNSUBSCRIBED, SubscriberStatus.BOUNCED])
def test_an_import_never_makes_active(store: Store, tmp_path: Path, status: SubscriberStatus) -> None:
    """Neither by a first import of somebody suppressed, nor by a second of somebody known."""
    reason = SuppressionReason.MANUAL if status == SubscriberStatus.UNSUBSCRIBED else SuppressionReason.BOUNCE
    store.suppressions.add(DEFAULT_TENANT, parse_address("j.doe@gmail.com"), reason)
    path = tmp_path / "list.csv"
    path.write_text("email,name\nJDoe+list@googlemail.com,Jane\n")
    for name in ("Jane", "Jane again"):
        path.write_text(f"email,name\nJDoe+list@googlemail.com,{name}\n")
        run(store, path)
        assert [(person.name, person.status) for person in people(store)] == [(name, status)]


def test_many_bad_lines_are_all_told_and_few_are_shown(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("email\n" + "nobody\n" * 500)
    report, rejected = run(store, path)
    assert (report.invalid, len(rejected), len(report.bad_rows)) == (500, 500, MOST_SHOWN)
    assert report.as_dict()["invalid_lines"][0]["line"] == 2


def test_a_store_that_fails_stops_the_import(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes out where the import was asked for, in our words."""

    def fail(*_args: object, **_kwargs: object) -> ImportCounts:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(store.subscribers, "import_people", fail)
    path = tmp_path / "list.csv"
    path.write_text("email\na@example.com\n")
    with pytest.raises(Unavailable, match="the disk is full"):
        run(store, path)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 300).map(str), max_size=80), max_size=8))
def test_fingerprints_are_a_set(groups: list[list[str]]) -> None:
    """Also when the table grows on the way."""
    before = fingerprints._SLOTS
    fingerprints._SLOTS = 16
    try:
        marks, seen = Fingerprints(), set()
        for keys in groups:
            expected = []
            for key in keys:
                expected.append(key not in seen)
                seen.add(key)
            assert marks.new_among(keys) == expected
    finally:
        fingerprints._SLOTS = before
