"""Leads from what prospecting found, and who receives the mail of leads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.adapters.web.dns_records import Records
from sendonce.adapters.web.receivers import MxReceivers
from sendonce.domain.campaigns.leads import LeadCounts, NewLead
from sendonce.domain.campaigns.receivers import Receiver
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.directions import Basis, NewDirection, tenant_named
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.domain.prospecting.kept_contacts import Trouble
from sendonce.domain.prospecting.written_letters import LetterStatus
from sendonce.errors import NotFound, RefusedByRule
from sendonce.flows.campaigns.import_leads import import_leads
from sendonce.flows.campaigns.leads_from_contacts import leads_from_contacts
from sendonce.flows.people.add_client import add_tenant
from tests.adapters.dns_server import DnsServer
from tests.conformance.prospecting_stage import NOW
from tests.conformance.test_written_letters import CONSENT, EUROPEAN, Desk

T = str(DEFAULT_TENANT)


@pytest.fixture
def desk(shared_store: SqlStore) -> Desk:
    return Desk(shared_store)


def emails(store: SqlStore) -> list[str]:
    return [lead.email for lead in store.leads.all(DEFAULT_TENANT, "default")]


def test_companies_become_leads_once(desk: Desk) -> None:
    """One address of each; asked again, only what was found since is new."""
    desk.company("firma.ru", "info@firma.ru", "sales@firma.ru")
    assert leads_from_contacts(desk.store, T, "default").counts == LeadCounts(added=1)
    desk.company("other.ru")
    assert leads_from_contacts(desk.store, T, "default").counts == LeadCounts(added=1, unchanged=1)
    first, second = desk.store.leads.all(DEFAULT_TENANT, "default")
    assert (first.email, second.email) == ("info@firma.ru", "info@other.ru")
    assert (first.company, first.source) == ("ООО «firma.ru»", "contacts")
    assert first.fields["city"] == "Казань"
    assert first.fields["source"] == "https://firma.ru/contacts"


def test_nobody_is_taken_who_must_not_be_written_to(desk: Desk) -> None:
    """Opted out, bounced, suppressed, or written to by prospecting already."""
    ids = {name: desk.company(f"{name}.ru") for name in ("fine", "out", "bounced", "denied", "written")}
    store = desk.store
    store.companies.opt_out(DEFAULT_TENANT, ids["out"], "asked", NOW)
    store.contacts.give_up(DEFAULT_TENANT, "info@bounced.ru", Trouble.BOUNCED)
    store.suppressions.add(DEFAULT_TENANT, parse_address("info@denied.ru"), SuppressionReason.MANUAL)
    desk.write()
    for letter in desk.all():
        if letter.made.company_id == ids["written"]:
            assert desk.letters.review(DEFAULT_TENANT, letter.id, LetterStatus.APPROVED, "ann")
    done = leads_from_contacts(store, T, "default")
    assert emails(store) == ["info@fine.ru"]
    assert done.left_out == {"suppressed: manual": 1}


def test_the_legal_gate_holds_here_too(desk: Desk) -> None:
    """A person's own mailbox needs consent in the Netherlands, and all of Russia does."""
    desk.direct(EUROPEAN)
    desk.company("firma.nl", "jan@firma.nl", role="personal")
    done = leads_from_contacts(desk.store, T, "default")
    assert (done.counts.added, sum(done.left_out.values())) == (0, 1)
    desk.direct(replace(EUROPEAN, jurisdiction="RU"))
    with pytest.raises(RefusedByRule, match="legitimate interest is no basis"):
        leads_from_contacts(desk.store, T, "default")


def test_another_direction_and_another_tenant_get_nobody(desk: Desk) -> None:
    desk.company("firma.ru")
    store = desk.store
    store.directions.put(DEFAULT_TENANT, replace(CONSENT, id="valves"), "ann")
    add_tenant(store, "eve", "Eve", "eve")
    store.directions.put(tenant_named("eve"), NewDirection("default", "RU", Basis.CONSENT, "a form"), "eve")
    assert leads_from_contacts(store, T, "valves").counts == LeadCounts()
    assert leads_from_contacts(store, "eve", "default").counts == LeadCounts()
    with pytest.raises(NotFound):
        leads_from_contacts(store, T, "nothing")


class Told:
    """Says what it was told, and what it was asked."""

    def __init__(self, known: Mapping[str, Receiver]) -> None:
        self.known, self.asked = known, list[str]()

    def look_up(self, domains: Iterable[str]) -> Mapping[str, Receiver]:
        self.asked += sorted(domains)
        return self.known


def test_receivers_are_told_at_import(desk: Desk) -> None:
    """A domain that is known needs no question, and silence later takes nothing back."""
    people = ("a@firma.example", "b@silent.example", "c@gmail.com")
    receivers = [Receiver.OTHER, Receiver.OTHER, Receiver.GOOGLE]
    rows = [
        NewLead(parse_address(it), None, None, None, receiver)
        for it, receiver in zip(people, receivers, strict=True)
    ]
    told = Told({"firma.example": Receiver.MICROSOFT})
    import_leads(desk.store, T, "default", rows, "list.csv", told)
    assert told.asked == ["firma.example", "silent.example"]
    found = {lead.email: lead.receiver for lead in desk.store.leads.all(DEFAULT_TENANT, "default")}
    assert found == dict(zip(people, ("microsoft", "other", "google"), strict=True))
    assert import_leads(desk.store, T, "default", rows, "list.csv").counts == LeadCounts(unchanged=3)


ZONE = {
    "firma.example": {"MX": ["10 aspmx.l.google.com."]},
    "own.example": {"MX": ["10 mail.own.example."]},
    "bare.example": {"A": ["192.0.2.1"]},
}


def test_receivers_by_mx() -> None:
    with DnsServer(ZONE) as server:
        receivers = MxReceivers(Records(server.address))
        asked = ["firma.example", "own.example", "bare.example", "a..b"]
        found = receivers.look_up(asked)
        again = receivers.look_up(["firma.example"])
        questions = [name for name, _ in server.questions]
    assert found == {
        "firma.example": Receiver.GOOGLE,
        "own.example": Receiver.OTHER,
        "bare.example": Receiver.OTHER,
    }
    assert again == {"firma.example": Receiver.GOOGLE}
    assert sum("firma.example" in name for name in questions) == 1


def test_a_name_server_that_fails_is_asked_once() -> None:
    with DnsServer(ZONE, broken=True) as server:
        receivers = MxReceivers(Records(server.address), seconds=5)
        assert receivers.look_up(["firma.example"]) == {}
        before = len(server.questions)
        assert receivers.look_up(["own.example"]) == {}
        assert len(server.questions) == before
