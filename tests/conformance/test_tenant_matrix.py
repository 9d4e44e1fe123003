"""Every verb that is told a tenant, asked by one tenant for what another has: nothing is read or changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any, get_type_hints

import pytest
import sqlalchemy as sa

from sendonce.adapters.stores.schema import metadata, serp_queries
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.campaigns.brakes import Limits
from sendonce.domain.campaigns.campaigns import Campaign, NewCampaign
from sendonce.domain.campaigns.leads import NewLead
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.windows import Window
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch
from sendonce.domain.engine.sender_identities import NewSender
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.mailouts.mailouts import Mailout, NewMailout
from sendonce.domain.people.directions import Basis, NewDirection, tenant_named
from sendonce.domain.people.people_columns import PeopleColumns
from sendonce.domain.people.sign_ups import SignUpWish
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.domain.prospecting.duplicates import PairState
from sendonce.domain.prospecting.kept_contacts import Contact, ContactKind, SeenContact, Trouble
from sendonce.domain.prospecting.searches import Region, SearchWish
from sendonce.domain.prospecting.send_slots import Slot
from sendonce.domain.prospecting.written_letters import LetterStatus, WrittenLetter
from sendonce.errors import NotFound, RefusedByRule
from sendonce.flows.people.add_client import add_tenant
from sendonce.ports import campaigns, engine, mailouts, people, prospecting
from tests.conformance.campaign_stage import CampaignStage
from tests.conformance.prospecting_stage import NOW, site
from tests.conformance.stage import LETTER
from tests.conformance.test_written_letters import CONSENT, Desk

EVE = tenant_named("eve")
JANE = parse_address("jane@secret.example")
LATER = NOW + timedelta(days=1)
PORTS = {
    "subscribers": people.Subscribers,
    "sign_ups": people.SignUps,
    "suppressions": people.Suppressions,
    "directions": people.Directions,
    "mailouts": mailouts.Mailouts,
    "dispatches": engine.Dispatches,
    "jobs": engine.Jobs,
    "letters": engine.Letters,
    "senders": engine.Senders,
    "companies": prospecting.Companies,
    "contacts": prospecting.CompanyContacts,
    "duplicates": prospecting.Duplicates,
    "searches": prospecting.Searches,
    "funnels": prospecting.Funnels,
    "written_letters": prospecting.WrittenLetters,
    "campaigns": campaigns.Campaigns,
    "leads": campaigns.Leads,
    "found_contacts": campaigns.FoundContacts,
    "pools": campaigns.Pools,
}


@dataclass(frozen=True)
class Victim:
    """What the other tenant has."""

    query: str
    companies: tuple[str, str]
    pair: str
    contact: Contact
    written: WrittenLetter
    campaign: Campaign
    sender: str
    removed: str
    mailout: Mailout
    dispatch: DispatchId
    job: str


def furnish(store: SqlStore) -> Victim:
    """A row in every table that a verb of the matrix could reach."""
    desk, stage = Desk(store), CampaignStage(store)
    firms = tuple(desk.company(domain, f"info@{domain}") for domain in ("firma.ru", "secret.example"))
    store.duplicates.look_at(DEFAULT_TENANT, firms[0], NOW)
    desk.write(auto=True)
    sender = stage.sender("ann@secret.example", tenant=DEFAULT_TENANT, direction="default")
    removed = NewSender("gone@secret.example", "smtp", "127.0.0.1")
    store.senders.remove(store.senders.add(DEFAULT_TENANT, removed, "ann").id, "ann")
    store.leads.put(DEFAULT_TENANT, "default", [NewLead(JANE, "Jane", "Firma", None, "other")], "list.csv")
    campaign = stage.campaign(tenant=DEFAULT_TENANT, direction="default")
    stage.round()
    store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(JANE, "Jane", {"city": "Riga"})])
    store.suppressions.add(DEFAULT_TENANT, parse_address("no@secret.example"), SuppressionReason.MANUAL)
    mailout = store.mailouts.create(DEFAULT_TENANT, NewMailout("secret", "notion", LETTER, source_id="page"))
    ((_, _, dispatch),) = store.campaigns.dispatches(campaign.id)
    (job,) = store.jobs.list(dispatch_id=dispatch)
    (contact,) = store.contacts.of(DEFAULT_TENANT, firms[:1])[firms[0]]
    with store.database.reading() as tx:
        query = tx.execute(sa.select(serp_queries.c.id)).scalar_one()
    pairs = [*store.duplicates.pairs(DEFAULT_TENANT, PairState.NOMINATED)]
    return Victim(
        query,
        (firms[0], firms[1]),
        pairs[0].id if pairs else query,
        contact,
        desk.all()[0],
        campaign,
        sender.id,
        removed.address,
        mailout,
        dispatch,
        job.id,
    )


@pytest.fixture
def victim(shared_store: SqlStore) -> Victim:
    found = furnish(shared_store)
    add_tenant(shared_store, EVE, "Eve", "eve")
    shared_store.directions.put(EVE, CONSENT, "eve")
    return found


Ask = Callable[[SqlStore, Victim], Any]
SEEN = SeenContact(
    ContactKind.EMAIL, "eve@evil.example", 1.0, "mailto", "https://evil.example", "role", False
)
SLOT = Slot(LATER, 10)

MATRIX: dict[str, Ask] = {
    "subscribers.upsert": lambda s, v: s.subscribers.upsert(EVE, [NewSubscriber(JANE, "Eve's", {})]),
    "subscribers.import_people": lambda s, v: s.subscribers.import_people(
        EVE, PeopleColumns([JANE.text], [JANE.key], ["Eve's"], ["{}"])
    ),
    "subscribers.add": lambda s, v: s.subscribers.add(EVE, NewSubscriber(JANE, "Eve's", {}), "eve"),
    "subscribers.all": lambda s, v: s.subscribers.all(EVE),
    "subscribers.find": lambda s, v: s.subscribers.find(EVE, JANE),
    "subscribers.count": lambda s, v: s.subscribers.count(EVE),
    "subscribers.attribute_names": lambda s, v: s.subscribers.attribute_names(EVE),
    "subscribers.count_lacking": lambda s, v: s.subscribers.count_lacking(EVE, "name"),
    "sign_ups.ask": lambda s, v: s.sign_ups.ask(EVE, SignUpWish(JANE, "Eve's", "form", "yes")),
    "suppressions.add": lambda s, v: s.suppressions.add(EVE, JANE, SuppressionReason.MANUAL),
    "suppressions.remove": lambda s, v: s.suppressions.remove(EVE, parse_address("no@secret.example"), "eve"),
    "suppressions.covers": lambda s, v: s.suppressions.covers(EVE, parse_address("no@secret.example")),
    "directions.put": lambda s, v: s.directions.put(
        EVE, NewDirection("default", "GB", Basis.CONSENT, "x"), "e"
    ),
    "directions.get": lambda s, v: s.directions.get(EVE, "other"),
    "mailouts.create": lambda s, v: s.mailouts.create(EVE, NewMailout("e", "notion", None, source_id="page")),
    "mailouts.get": lambda s, v: s.mailouts.get(EVE, v.mailout.id),
    "mailouts.of_page": lambda s, v: s.mailouts.of_page(EVE, "notion", "page"),
    "mailouts.all": lambda s, v: s.mailouts.all(EVE),
    "mailouts.twins": lambda s, v: s.mailouts.twins(EVE, LETTER),
    "mailouts.with_prefix": lambda s, v: s.mailouts.with_prefix(EVE, v.mailout.id[:8], 9),
    "mailouts.count_excluded": lambda s, v: s.mailouts.count_excluded(EVE, [v.mailout.id]),
    "dispatches.open": lambda s, v: s.dispatches.open(EVE, NewDispatch("campaign_step", v.campaign.id)),
    "letters.put": lambda s, v: s.letters.put(EVE, LETTER),
    "senders.add": lambda s, v: s.senders.add(EVE, NewSender(v.removed, "smtp", "127.0.0.2"), "eve"),
    "companies.found": lambda s, v: s.companies.found(EVE, v.query, [site("firma.ru")], NOW),
    "companies.get": lambda s, v: s.companies.get(EVE, v.companies[0]),
    "companies.at": lambda s, v: s.companies.at(EVE, "firma.ru"),
    "companies.all": lambda s, v: s.companies.all(EVE),
    "companies.count": lambda s, v: s.companies.count(EVE),
    "companies.with_prefix": lambda s, v: s.companies.with_prefix(EVE, v.companies[0][:8], 9),
    "companies.found_by": lambda s, v: s.companies.found_by(EVE, v.companies),
    "companies.opt_out": lambda s, v: s.companies.opt_out(EVE, v.companies[0], "eve", NOW),
    "contacts.keep": lambda s, v: s.contacts.keep(EVE, v.companies[0], [SEEN], NOW),
    "contacts.of": lambda s, v: s.contacts.of(EVE, v.companies),
    "contacts.all": lambda s, v: s.contacts.all(EVE),
    "contacts.count": lambda s, v: s.contacts.count(EVE),
    "contacts.give_up": lambda s, v: s.contacts.give_up(EVE, "info@firma.ru", Trouble.BOUNCED),
    "duplicates.look_at": lambda s, v: s.duplicates.look_at(EVE, v.companies[0], NOW),
    "duplicates.pairs": lambda s, v: [s.duplicates.pairs(EVE, state) for state in PairState],
    "duplicates.count": lambda s, v: s.duplicates.count(EVE),
    "duplicates.pairs_of": lambda s, v: s.duplicates.pairs_of(EVE, v.companies[0]),
    "duplicates.decide": lambda s, v: s.duplicates.decide(EVE, v.pair, one=True, actor="eve", now=NOW),
    "duplicates.undo": lambda s, v: s.duplicates.undo(EVE, v.companies[0], "eve", NOW),
    "duplicates.listed": lambda s, v: s.duplicates.listed(EVE),
    "duplicates.alike": lambda s, v: s.duplicates.alike(EVE, v.companies),
    "searches.add": lambda s, v: s.searches.add(
        EVE, [SearchWish("производители насосов", Region("43", "Казань"), 1)], NOW
    ),
    "searches.all": lambda s, v: s.searches.all(EVE),
    "searches.tally": lambda s, v: s.searches.tally(EVE),
    "searches.retry": lambda s, v: s.searches.retry(EVE, v.query, NOW, "eve"),
    "searches.with_prefix": lambda s, v: s.searches.with_prefix(EVE, v.query[:8], 9),
    "funnels.outreach": lambda s, v: s.funnels.outreach(EVE, datetime(2026, 1, 1, tzinfo=UTC)),
    "written_letters.unwritten": lambda s, v: s.written_letters.unwritten(
        EVE, "default", of_any_search=True, limit=9
    ),
    "written_letters.add": lambda s, v: s.written_letters.add(EVE, v.written.made, NOW),
    "written_letters.get": lambda s, v: s.written_letters.get(EVE, v.written.id),
    "written_letters.of_job": lambda s, v: s.written_letters.of_job(EVE, v.job),
    "written_letters.all": lambda s, v: s.written_letters.all(EVE),
    "written_letters.count": lambda s, v: s.written_letters.count(EVE),
    "written_letters.with_prefix": lambda s, v: s.written_letters.with_prefix(EVE, v.written.id[:8], 9),
    "written_letters.review": lambda s, v: s.written_letters.review(
        EVE, v.written.id, LetterStatus.REJECTED, "eve"
    ),
    "written_letters.edit": lambda s, v: s.written_letters.edit(EVE, v.written.id, "s", "t", [], "eve"),
    "written_letters.skip": lambda s, v: s.written_letters.skip(EVE, v.written.id, "eve"),
    "written_letters.open_dispatch": lambda s, v: s.written_letters.open_dispatch(EVE, "default"),
    "written_letters.scheduled": lambda s, v: s.written_letters.scheduled(EVE, "default"),
    "written_letters.begin_plan": lambda s, v: s.written_letters.begin_plan(
        EVE, v.written.id, v.dispatch, v.written.id, SLOT
    ),
    "campaigns.create": lambda s, v: s.campaigns.create(
        EVE, NewCampaign(v.campaign.name, "default", Window(), Limits(), ()), "eve"
    ),
    "campaigns.get": lambda s, v: [s.campaigns.get(EVE, it) for it in (v.campaign.id, v.campaign.name)],
    "campaigns.record_of_sender": lambda s, v: s.campaigns.record_of_sender(EVE, v.sender, 9),
    "campaigns.record_to_receiver": lambda s, v: s.campaigns.record_to_receiver(EVE, "other", 9),
    "campaigns.taken": lambda s, v: [
        each for each in s.campaigns.taken(EVE, NOW - timedelta(9999), senders=[v.sender]) if each
    ],
    "campaigns.last_slot": lambda s, v: s.campaigns.last_slot(EVE, sender=v.sender),
    "leads.put": lambda s, v: s.leads.put(EVE, "default", [NewLead(JANE, "E", None, None, "other")], "e"),
    "leads.all": lambda s, v: s.leads.all(EVE),
    "leads.find": lambda s, v: s.leads.find(EVE, "default", JANE),
    "leads.count": lambda s, v: s.leads.count(EVE, "default"),
    "found_contacts.of_direction": lambda s, v: s.found_contacts.of_direction(EVE, "default"),
    "pools.put": lambda s, v: s.pools.put(EVE, SenderLimits(v.sender, EVE, "default", 9999)),
    "pools.of_direction": lambda s, v: s.pools.of_direction(EVE, "default"),
    "pools.get": lambda s, v: s.pools.get(EVE, v.sender),
    "pools.judge_from": lambda s, v: s.pools.judge_from(EVE, v.sender, NOW),
    "pools.set_pace": lambda s, v: s.pools.set_pace(EVE, v.sender, 0.01, NOW),
}
"""Each verb as Eve asks it, with the ids and the names of the other tenant's rows."""

MAKES_ONES_OWN = {
    *("subscribers.upsert", "subscribers.import_people", "subscribers.add", "sign_ups.ask"),
    *("suppressions.add", "directions.put", "mailouts.create", "dispatches.open", "letters.put"),
    *("companies.found", "searches.add", "campaigns.create", "leads.put"),
}
"""Their answers are about Eve's new rows. All others find nothing."""


def test_every_verb_is_in_the_matrix() -> None:
    """Whoever adds a verb that is told a tenant says here what it does with another tenant's rows."""
    told = {
        f"{place}.{name}"
        for place, port in PORTS.items()
        for name, verb in vars(port).items()
        if not name.startswith("_") and callable(verb) and _first(verb) is TenantId
    }
    assert told == MATRIX.keys()


def _first(verb: Any) -> Any:
    names = [*signature(verb).parameters][1:2]
    return get_type_hints(verb)[names[0]] if names else None


def rows(store: SqlStore) -> Counter[tuple[str, str]]:
    """All that is not Eve's own."""
    with store.database.reading() as tx:
        tables = [table for table in metadata.sorted_tables if table.name != "event_receivers"]
        every = ((table.name, row) for table in tables for row in tx.execute(sa.select(table)))
        return Counter(
            (name, repr(tuple(row))) for name, row in every if row._mapping.get("tenant_id") != EVE
        )


def nothing(answer: Any) -> bool:
    """Empty, zero, False, or made of such."""
    if isinstance(answer, Mapping):
        return all(map(nothing, answer.values()))
    if isinstance(answer, list | tuple):
        return all(map(nothing, answer))
    if hasattr(answer, "__dataclass_fields__"):
        return all(nothing(getattr(answer, name)) for name in answer.__dataclass_fields__)
    return not answer


def test_no_verb_reads_or_changes_what_another_tenant_has(shared_store: SqlStore, victim: Victim) -> None:
    leaks = []
    # What finds nothing comes first: later there are rows of Eve's own.
    for name in sorted(MATRIX, key=MAKES_ONES_OWN.__contains__):
        before = rows(shared_store)
        try:
            answer = MATRIX[name](shared_store, victim)
        except (NotFound, RefusedByRule):
            answer = None
        if before - rows(shared_store):
            leaks.append(f"{name} changed {[*(before - rows(shared_store))]}")
        if name not in MAKES_ONES_OWN and not nothing(answer):
            leaks.append(f"{name} answered {answer!r}")
    assert not leaks, "\n".join(leaks)


def test_nobody_learns_who_else_searched(shared_store: SqlStore, victim: Victim) -> None:
    """A company that another tenant's query is said to have found: that query stays out of sight."""
    found = shared_store.companies.found(EVE, victim.query, [site("firma.ru")], NOW)
    assert found.companies["firma.ru"] not in victim.companies
    assert nothing(shared_store.companies.found_by(EVE, [*found.companies.values()]))


def test_the_owner_finds_it_all(shared_store: SqlStore, victim: Victim) -> None:
    """So that the test above is not passed by a store that has nothing."""
    owner = TenantId(DEFAULT_TENANT)
    assert shared_store.companies.get(owner, victim.companies[0]) is not None
    assert shared_store.written_letters.get(owner, victim.written.id) is not None
    assert shared_store.campaigns.get(owner, victim.campaign.id) is not None
    assert shared_store.pools.get(owner, victim.sender) is not None
    assert shared_store.leads.count(owner, "default") == 1
    assert shared_store.mailouts.get(owner, victim.mailout.id) is not None
