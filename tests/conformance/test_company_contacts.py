"""Contacts of companies: each once, merged, one of each kind primary, on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.kept_contacts import Contact, ContactKind, SeenContact, TakesMail, Trouble
from tests.conformance.prospecting_stage import NOW, Prospects

HOME = "https://firma.ru/"
INFO = SeenContact(ContactKind.EMAIL, "info@firma.ru", 0.8, "text", HOME, "role")
SALES = SeenContact(ContactKind.EMAIL, "sales@firma.ru", 0.7, "script", HOME, "role")
PHONE = SeenContact(ContactKind.PHONE, "+78432334455", 0.6, "text", HOME, attributes={"extension": "12"})
LATER = NOW + timedelta(days=1)


class Kept:
    def __init__(self, store: SqlStore) -> None:
        self.prospects = Prospects(store)
        self.prospects.find("firma.ru", "other.ru")
        self.contacts = store.contacts
        self.company = self.prospects.company("firma.ru").id
        self.other = self.prospects.company("other.ru").id

    def keep(self, *seen: SeenContact, company: str = "", later: bool = False) -> int:
        return self.contacts.keep(DEFAULT_TENANT, company or self.company, seen, LATER if later else NOW)

    def all(self) -> list[Contact]:
        return list(self.contacts.of(DEFAULT_TENANT, [self.company])[self.company])

    def primary(self, kind: ContactKind = ContactKind.EMAIL) -> str | None:
        chosen = [it.seen.value for it in self.all() if it.primary and it.seen.kind is kind]
        assert len(chosen) <= 1
        return chosen[0] if chosen else None


@pytest.fixture
def kept(shared_store: SqlStore) -> Kept:
    return Kept(shared_store)


def test_seen_again_changes_only_when_it_was_seen(kept: Kept) -> None:
    assert kept.keep(INFO, PHONE) == 2
    before = kept.all()

    assert kept.keep(INFO, PHONE, later=True) == 0

    assert kept.all() == [replace(contact, last_seen_at=LATER) for contact in before]


def test_an_older_sighting_that_comes_late_turns_no_clock_back(kept: Kept) -> None:
    kept.keep(INFO, later=True)
    kept.keep(INFO)
    assert kept.all()[0].last_seen_at == LATER


def test_case_makes_no_second_contact(kept: Kept) -> None:
    kept.keep(INFO)
    assert kept.keep(replace(INFO, value="Info@Firma.ru")) == 0
    assert len(kept.all()) == 1


def test_sightings_merge(kept: Kept) -> None:
    """The better source counts, whichever comes first; attributes add up."""
    better = replace(
        PHONE, quality=0.9, source="tel", source_url=HOME + "contacts", attributes={"label": "x"}
    )
    kept.keep(better)
    kept.keep(PHONE)
    [phone] = kept.all()
    assert (phone.seen.quality, phone.seen.source, phone.seen.source_url) == (0.9, "tel", HOME + "contacts")
    assert phone.seen.attributes == {"extension": "12", "label": "x"}


def test_silence_of_dns_takes_no_answer_back(kept: Kept) -> None:
    for answer in (TakesMail.UNKNOWN, TakesMail.YES, TakesMail.UNKNOWN, None):
        kept.keep(replace(INFO, takes_mail=answer))
    assert kept.all()[0].seen.takes_mail is TakesMail.YES


def test_one_of_each_kind_is_primary_and_stays_it(kept: Kept) -> None:
    kept.keep(SALES, INFO, PHONE)
    assert (kept.primary(), kept.primary(ContactKind.PHONE)) == ("info@firma.ru", "+78432334455")

    kept.keep(replace(SALES, quality=1.0, source="mailto"))

    assert kept.primary() == "info@firma.ru"


def test_what_takes_no_mail_is_not_primary(kept: Kept) -> None:
    kept.keep(replace(INFO, takes_mail=TakesMail.NO), replace(SALES, takes_mail=TakesMail.UNKNOWN))
    assert kept.primary() == "sales@firma.ru"
    kept.keep(replace(SALES, takes_mail=TakesMail.NO))
    assert kept.primary() is None


@pytest.mark.parametrize("trouble", list(Trouble))
def test_an_address_that_is_given_up_makes_room(kept: Kept, trouble: Trouble) -> None:
    kept.keep(INFO, SALES)
    kept.keep(INFO, company=kept.other)

    assert kept.contacts.give_up(DEFAULT_TENANT, "INFO@firma.ru", trouble) == 2

    assert kept.primary() == "sales@firma.ru"
    kept.keep(replace(INFO, quality=1.0))
    assert kept.primary() == "sales@firma.ru"


def test_pages_of_contacts(kept: Kept) -> None:
    kept.keep(INFO, PHONE)
    kept.keep(SALES, company=kept.other, later=True)
    emails = kept.contacts.all(DEFAULT_TENANT, kind=ContactKind.EMAIL)
    assert [(it.domain, it.seen.value) for it in emails] == [
        ("firma.ru", "info@firma.ru"),
        ("other.ru", "sales@firma.ru"),
    ]
    first = kept.contacts.all(DEFAULT_TENANT, limit=1)
    assert len(kept.contacts.all(DEFAULT_TENANT, after=first[0].id)) == 2
    assert kept.contacts.count(DEFAULT_TENANT) == {ContactKind.EMAIL: 2, ContactKind.PHONE: 1}


def test_another_tenant_sees_and_changes_nothing(kept: Kept) -> None:
    kept.keep(INFO)
    stranger = TenantId("stranger")
    assert kept.contacts.keep(stranger, kept.company, [SALES], NOW) == 0
    assert kept.contacts.give_up(stranger, "info@firma.ru", Trouble.BOUNCED) == 0
    assert kept.contacts.all(stranger) == []
    assert kept.contacts.of(stranger, [kept.company]) == {kept.company: []}
    assert kept.primary() == "info@firma.ru"


def test_two_visits_at_once_keep_each_contact_once(kept: Kept) -> None:
    many = [replace(INFO, value=f"office{number}@firma.ru") for number in range(20)]
    with ThreadPoolExecutor(4) as threads:
        added = list(threads.map(lambda order: kept.keep(*many[::order]), (1, -1, 1, -1)))
    assert sum(added) == len(kept.all()) == 20
    assert kept.primary() is not None
