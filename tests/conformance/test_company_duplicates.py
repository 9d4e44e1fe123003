"""Merges keep their evidence, can be undone, and come out the same on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import CompanyStatus, Findings
from sendonce.domain.prospecting.duplicates import Evidence, Judged, PairState
from sendonce.domain.prospecting.tasks import TaskKind
from tests.conformance.prospecting_stage import NOW, Prospects
from tests.conftest import OpenStore

INN, OGRN = "7707083893", "1027700132195"
SHOWS_INN = Findings(has_contacts=True, inn=[INN])


@pytest.fixture
def prospects(shared_store: SqlStore) -> Prospects:
    return Prospects(shared_store)


def found_in_turn(prospects: Prospects, *domains: str) -> None:
    for minutes, domain in enumerate(domains):
        prospects.find(domain, now=NOW + timedelta(minutes=minutes))


def look(prospects: Prospects, *domains: str) -> Judged:
    judged = Judged()
    for domain in domains:
        company = prospects.company(domain)
        judged += prospects.store.duplicates.look_at(DEFAULT_TENANT, company.id, NOW)
    return judged


def test_the_same_tax_number_merges_and_undo_parts(prospects: Prospects) -> None:
    """The first found stays; the other is a duplicate, opted out, until a person says otherwise."""
    found_in_turn(prospects, "old.ru", "young.ru")
    other = prospects.add_query("насосы", "Самара")
    prospects.find("young.ru", query=other)
    prospects.visit(NOW + timedelta(hours=1), old=SHOWS_INN, young=SHOWS_INN)
    assert look(prospects, "young.ru", "old.ru") == Judged(merged=1)
    old, young = prospects.company("old.ru"), prospects.company("young.ru")
    assert (young.status, young.primary_id, young.opt_out) == (CompanyStatus.DUPLICATE, old.id, True)
    assert (old.status, old.opt_out) == (CompanyStatus.ENRICHED, False)
    # The next search that finds the duplicate finds the primary, which was found by both searches.
    assert prospects.find("young.ru").companies == {"young.ru": old.id}
    assert len(prospects.companies.found_by(DEFAULT_TENANT, [old.id])[old.id]) == 2
    [pair] = prospects.store.duplicates.pairs_of(DEFAULT_TENANT, young.id)
    assert (pair.evidence, pair.value, pair.actor) == (Evidence.INN, INN, "sendonce")

    assert prospects.store.duplicates.undo(DEFAULT_TENANT, young.id, "olga", NOW) == 1
    young = prospects.company("young.ru")
    assert (young.status, young.primary_id, young.opt_out) == (CompanyStatus.NEW, None, False)
    [visit] = prospects.take(now=NOW + timedelta(hours=2))
    assert visit.company.domain == "young.ru"
    assert prospects.companies.visited(visit, SHOWS_INN, NOW)
    assert look(prospects, "young.ru") == Judged()


def test_two_numbers_of_two_companies_make_one_pair(prospects: Prospects) -> None:
    """ИНН and ОГРН come together. They merge two companies once, and are asked about and undone once."""
    found_in_turn(prospects, "old.ru", "young.ru")
    both = Findings(has_contacts=True, inn=[INN], ogrn=[OGRN])
    prospects.visit(NOW + timedelta(hours=1), old=both, young=both)
    assert look(prospects, "young.ru", "old.ru") == Judged(merged=1)
    duplicates = prospects.store.duplicates
    young = prospects.company("young.ru")
    assert duplicates.count(DEFAULT_TENANT) == {PairState.MERGED: 1}
    assert len(duplicates.pairs(DEFAULT_TENANT, PairState.MERGED)) == 1
    shown = {pair.evidence for pair in duplicates.pairs_of(DEFAULT_TENANT, young.id)}
    assert shown == {Evidence.INN, Evidence.OGRN}
    assert duplicates.undo(DEFAULT_TENANT, young.id, "olga", NOW) == 1
    assert duplicates.count(DEFAULT_TENANT) == {PairState.UNDONE: 1}


def test_a_person_is_asked_once_about_two_companies(prospects: Prospects) -> None:
    """Whatever nominates them: here two numbers that too many sites show."""
    domains = [f"d{number}.ru" for number in range(4)]
    found_in_turn(prospects, *domains)
    both = Findings(has_contacts=True, inn=[INN], ogrn=[OGRN])
    for visit in prospects.take(now=NOW + timedelta(hours=1)):
        assert prospects.companies.visited(visit, both, NOW)
    look(prospects, *domains)
    duplicates = prospects.store.duplicates
    first, *others = duplicates.pairs(DEFAULT_TENANT, PairState.NOMINATED)
    assert len(others) == 2
    assert duplicates.decide(DEFAULT_TENANT, first.id, one=False, actor="olga", now=NOW)
    assert list(duplicates.pairs(DEFAULT_TENANT, PairState.NOMINATED)) == others


def test_a_hub_takes_apart_what_it_had_merged(prospects: Prospects) -> None:
    domains = [f"d{number}.ru" for number in range(4)]
    found_in_turn(prospects, *domains)
    for domain, visit in zip(domains, prospects.take(now=NOW + timedelta(hours=1)), strict=True):
        assert prospects.companies.visited(visit, SHOWS_INN, NOW)
        look(prospects, domain)
    statuses = {prospects.company(domain).status for domain in domains}
    assert statuses == {CompanyStatus.ENRICHED, CompanyStatus.NEW}
    assert len(prospects.store.duplicates.pairs(DEFAULT_TENANT, PairState.NOMINATED)) == 3
    assert prospects.store.duplicates.pairs(DEFAULT_TENANT, PairState.MERGED) == []


def test_a_person_decides_what_was_nominated(prospects: Prospects) -> None:
    found_in_turn(prospects, "a.ru", "b.ru", "c.ru")
    named = Findings(has_contacts=True, name="ООО «Ромашка»")
    prospects.visit(NOW + timedelta(hours=1), a=named, b=named, c=named)
    look(prospects, "a.ru", "b.ru", "c.ru")
    assert prospects.company("b.ru").status is CompanyStatus.ENRICHED
    first, second = prospects.store.duplicates.pairs(DEFAULT_TENANT, PairState.NOMINATED)
    decide = prospects.store.duplicates.decide
    assert decide(DEFAULT_TENANT, first.id, one=True, actor="olga", now=NOW)
    assert decide(DEFAULT_TENANT, second.id, one=False, actor="olga", now=NOW)
    assert not decide(DEFAULT_TENANT, second.id, one=True, actor="ivan", now=NOW)
    assert prospects.company(first.duplicate.domain).status is CompanyStatus.DUPLICATE
    assert prospects.company(second.duplicate.domain).status is CompanyStatus.ENRICHED
    assert look(prospects, "a.ru", "b.ru", "c.ru") == Judged()


def test_a_redirect_to_another_company_makes_them_one(prospects: Prospects) -> None:
    """Whichever of the two is looked at, and before the target was visited: its visit is called off."""
    found_in_turn(prospects, "old.ru", "new.ru")
    [visit] = prospects.take(1, now=NOW + timedelta(hours=1))
    assert prospects.companies.visited(visit, Findings(has_contacts=True, moved_to="new.ru"), NOW)
    assert look(prospects, "new.ru") == Judged(merged=1)
    assert prospects.company("new.ru").primary_id == prospects.company("old.ru").id
    assert prospects.store.tasks.count_open(TaskKind.VISIT) == 0


def test_groups_that_meet_become_one(prospects: Prospects) -> None:
    """A and B share one number, C and D another; then B turns out to be C."""
    found_in_turn(prospects, "a.ru", "b.ru", "c.ru", "d.ru")
    prospects.visit(
        NOW + timedelta(hours=1),
        a=SHOWS_INN,
        b=Findings(has_contacts=True, inn=[INN], ogrn=["1037700013020"]),
        c=Findings(has_contacts=True, ogrn=["1037700013020", OGRN]),
        d=Findings(has_contacts=True, ogrn=[OGRN]),
    )
    look(prospects, "d.ru", "b.ru")
    primary = prospects.company("a.ru")
    assert {prospects.company(f"{name}.ru").primary_id for name in "bcd"} == {primary.id}
    prospects.store.duplicates.undo(DEFAULT_TENANT, prospects.company("c.ru").id, "olga", NOW)
    assert prospects.company("b.ru").primary_id == primary.id
    assert prospects.company("c.ru").primary_id is None
    assert prospects.company("d.ru").primary_id is None


def test_an_opt_out_reaches_all_that_are_one(prospects: Prospects) -> None:
    found_in_turn(prospects, "old.ru", "young.ru")
    prospects.visit(NOW + timedelta(hours=1), old=SHOWS_INN, young=SHOWS_INN)
    look(prospects, "old.ru")
    young = prospects.company("young.ru")
    prospects.companies.opt_out(DEFAULT_TENANT, young.id, "asked by mail", NOW)
    look(prospects, "young.ru")
    assert prospects.company("old.ru").opt_out
    assert prospects.company("old.ru").opt_out_reason == "group"


def test_workers_that_judge_at_once_agree(open_any_store: OpenStore) -> None:
    """On PostgreSQL, four workers, a chain of companies each of which is one with the next."""
    with open_any_store("postgres") as store:
        assert isinstance(store, SqlStore)
        prospects = Prospects(store)
        domains = [f"d{number:02}.ru" for number in range(12)]
        found_in_turn(prospects, *domains)
        links = [f"10277001321{number:02}" for number in range(13)]
        shown = {f"d{n:02}": Findings(has_contacts=True, ogrn=links[n : n + 2]) for n in range(12)}
        prospects.visit(NOW + timedelta(hours=1), **shown)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda domain: look(prospects, domain), domains[::-1]))
        primary = prospects.company(domains[0]).id
        assert {prospects.company(domain).primary_id for domain in domains[1:]} == {primary}
