"""One company for each domain, whoever finds it and how often; one worker at a time visits it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import CompanyStatus, Fact, Findings, FoundSite
from sendonce.domain.prospecting.tasks import MOST_ATTEMPTS, TaskKind
from tests.conformance.prospecting_stage import LEASE, NOW, Prospects, site
from tests.conftest import OpenStore


@pytest.fixture
def prospects(shared_store: SqlStore) -> Prospects:
    return Prospects(shared_store)


def domains(prospects: Prospects) -> list[str]:
    return [company.domain for company in prospects.companies.all(DEFAULT_TENANT)]


def test_a_domain_is_one_company(prospects: Prospects) -> None:
    """However many pages of it a search finds; its home page is what will be visited."""
    found = prospects.find("nasos.ru", "xn--80aegj1b.xn--p1ai", "nasos.ru")
    assert found.created == 2
    company = prospects.company("nasos.ru")
    assert found.companies["nasos.ru"] == company.id
    assert company.website_url == "https://www.nasos.ru/"
    assert company.facts == (Fact("title", "Завод nasos.ru", "https://www.nasos.ru/catalog?page=2"),)
    assert (company.language, company.status) == ("ru", CompanyStatus.NEW)


def test_a_second_search_adds_no_duplicates(prospects: Prospects) -> None:
    """It is noted as another search, and another region, that found the same company."""
    before = prospects.find("a.ru", "b.ru").companies
    again = prospects.add_query("насосы оптом", "Самара")
    found = prospects.find("b.ru", "c.ru", query=again, now=NOW + timedelta(days=1))
    assert (found.created, found.companies["b.ru"]) == (1, before["b.ru"])
    by = prospects.companies.found_by(DEFAULT_TENANT, list(found.companies.values()))
    assert [search.region for search in by[before["b.ru"]]] == ["Казань", "Самара"]
    assert sorted(domains(prospects)) == ["a.ru", "b.ru", "c.ru"]
    assert prospects.store.tasks.count_open(TaskKind.VISIT) == 3


def test_nothing_found_is_nothing_done(prospects: Prospects) -> None:
    assert prospects.find().created == 0


def test_hostile_titles_are_stored_readable(prospects: Prospects) -> None:
    """A NUL or a lone surrogate would stop PostgreSQL, a line break a terminal."""
    hostile = site("a.ru", "Завод\x00 \ud800\r\n\x1b[31m" + "x" * 5000)
    prospects.companies.found(DEFAULT_TENANT, prospects.query, [hostile], NOW)
    [title] = prospects.company("a.ru").facts
    assert title.value.startswith("Завод [31mxxx")
    assert title.value.isprintable()
    assert len(title.value) <= 2000


def test_another_tenants_companies_are_not_found(prospects: Prospects) -> None:
    other = TenantId("other")
    company_id = prospects.find("a.ru").companies["a.ru"]
    assert prospects.companies.get(other, company_id) is None
    assert prospects.companies.at(other, "a.ru") is None
    assert prospects.companies.all(other) == []


def test_pages_go_on_where_the_last_one_ended(prospects: Prospects) -> None:
    prospects.find(*(f"d{number}.ru" for number in range(7)))
    seen, after = [], ""
    while page := prospects.companies.all(DEFAULT_TENANT, after=after, limit=3):
        seen += [company.domain for company in page]
        after = page[-1].id
    assert seen == [f"d{number}.ru" for number in range(7)]


def test_two_workers_never_visit_one_company(prospects: Prospects) -> None:
    prospects.find(*(f"d{number}.ru" for number in range(10)))
    first, second = prospects.take(4, "w1"), prospects.take(100, "w2")
    assert len(first) == 4
    assert len(second) == 6
    assert not {visit.company.id for visit in first} & {visit.company.id for visit in second}
    assert prospects.take(100, "w3") == []


def test_many_workers_share_the_visits(open_any_store: OpenStore) -> None:
    """At the same moment, on PostgreSQL: each company goes to exactly one."""
    with open_any_store("postgres") as store:
        assert isinstance(store, SqlStore)
        prospects = Prospects(store)
        prospects.find(*(f"d{number}.ru" for number in range(60)))
        with ThreadPoolExecutor(3) as pool:
            batches = list(pool.map(lambda n: prospects.take(5, f"w{n % 3}"), range(18)))
    taken = [visit.company.id for batch in batches for visit in batch]
    assert len(taken) == len(set(taken)) == 60


def test_a_dead_workers_lease_runs_out(prospects: Prospects) -> None:
    """Then another has the visit, and the first one, should it live, changes nothing any more."""
    prospects.find("a.ru")
    [late] = prospects.take(worker="dead")
    [now] = prospects.take(worker="alive", now=NOW + LEASE)
    assert now.task.attempt == 2
    assert not prospects.companies.visited(late, Findings(has_contacts=True, name="Late"), NOW)
    assert not prospects.companies.unreachable(late, "late", NOW)
    assert prospects.companies.visited(now, Findings(has_contacts=False), NOW)
    assert prospects.company("a.ru").status is CompanyStatus.NO_CONTACTS
    assert prospects.company("a.ru").name == ""


def test_what_a_visit_found_is_kept(prospects: Prospects) -> None:
    prospects.find("a.ru")
    [visit] = prospects.take()
    fact = Fact("activity", "Насосы\x00 и моторы", "https://a.ru/about")
    findings = Findings(has_contacts=True, name="ООО Насос", city="Казань", inn=["7707083893"], facts=[fact])
    assert prospects.companies.visited(visit, findings, NOW)
    company = prospects.company("a.ru")
    assert (company.name, company.city, company.inn) == ("ООО Насос", "Казань", "7707083893")
    assert company.facts == (Fact("activity", "Насосы и моторы", "https://a.ru/about"),)
    assert (company.status, company.crawled_at) == (CompanyStatus.ENRICHED, NOW)
    assert prospects.take() == []


def test_a_visit_put_off_comes_back_when_due(prospects: Prospects) -> None:
    prospects.find("a.ru")
    [visit] = prospects.take()
    later = NOW + timedelta(hours=1)
    assert prospects.companies.put_off(visit, later, "timed out", NOW)
    assert prospects.take(now=later - timedelta(seconds=1)) == []
    [again] = prospects.take(now=later)
    assert prospects.companies.unreachable(again, "timed out", later)
    company = prospects.company("a.ru")
    assert (company.status, company.reason) == (CompanyStatus.UNREACHABLE, "timed out")


def test_where_a_site_moved_leads_to_it(prospects: Prospects) -> None:
    """The next search that finds the new domain finds the old company."""
    known = prospects.find("old.ru").companies["old.ru"]
    moved = Findings(has_contacts=True, moved_to="new.ru", website_url="https://new.ru/")
    prospects.visit(old=moved)
    found = prospects.find("new.ru")
    assert (found.created, found.companies) == (0, {"new.ru": known})
    assert prospects.company("new.ru").website_url == "https://new.ru/"


def test_batches_that_meet_make_each_company_once(open_any_store: OpenStore) -> None:
    """Two workers find the same sites at the same moment, in different orders."""
    with open_any_store("postgres") as store:
        assert isinstance(store, SqlStore)
        prospects = Prospects(store)
        names = [f"d{number}.ru" for number in range(200)]
        with ThreadPoolExecutor(4) as pool:
            orders = [names, names[::-1], names[100:] + names[:100], names]
            found = list(pool.map(lambda order: prospects.find(*order), orders))
        assert sum(each.created for each in found) == 200
        assert all(each.companies == found[0].companies for each in found)
        assert len(domains(prospects)) == 200


def test_a_title_may_be_empty(prospects: Prospects) -> None:
    bare = FoundSite("https://a.ru/", "a.ru", "")
    assert prospects.companies.found(DEFAULT_TENANT, prospects.query, [bare], NOW).created == 1


def test_a_batch_looks_up_its_own_domains_and_no_others(sqlite_url: str) -> None:
    """SQLite would rather go through all domains that are known, once for each batch."""
    with closing(open_store(sqlite_url)) as store, store.database.reading() as tx:
        for name in ("found_companies", "found_visits", "found_owners"):
            explain = f"EXPLAIN QUERY PLAN {store.database.statement(name)}"
            given = {"tenant": "", "now": "", "sites": "[]"}
            steps = [row[3] for row in store.database.driver(tx).execute(explain, given)]
            assert any(step.endswith("(tenant_id=? AND domain=?)") for step in steps), steps


def test_a_site_that_kills_its_visitors_is_given_up(prospects: Prospects) -> None:
    prospects.find("deadly.ru", "fine.ru")
    now = NOW
    for _ in range(MOST_ATTEMPTS):
        visits = {visit.company.domain: visit for visit in prospects.take(now=now)}
        if "fine.ru" in visits:
            assert prospects.companies.visited(visits["fine.ru"], Findings(has_contacts=True), now)
        assert "deadly.ru" in visits
        now += LEASE
    assert prospects.take(now=now) == []
    company = prospects.company("deadly.ru")
    assert company.status is CompanyStatus.UNREACHABLE
    assert "did not come back" in (company.reason or "")
    assert prospects.store.tasks.count_open(TaskKind.VISIT) == 0
