"""From companies that wait for a visit to contacts that can be written to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import timedelta

import pytest

from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.adapters.web.dns_records import Records
from sendonce.adapters.web.guarded_network import GuardedNetwork, StandIn
from sendonce.adapters.web.mail_domains import MailDomains
from sendonce.adapters.web.site_reader import site_reader
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import CompanyStatus
from sendonce.domain.prospecting.kept_contacts import Contact, TakesMail
from sendonce.flows.prospecting.enrich_companies import Enriched, Enricher
from sendonce.sandbox.http_server import Reply
from tests.adapters.dns_server import DnsServer
from tests.adapters.web_stage import Web, crawler, moved
from tests.conformance.prospecting_stage import Prospects

CONTACTS = (
    '<a href="mailto:info@firma.ru">info@firma.ru</a> <a href="tel:+78432334455">тел.</a> '
    "ООО «Насос», г. Казань, ИНН 7707083893, ОГРН 1027700132195"
)
SITE: Mapping[str, str | Reply] = {
    "www.firma.ru/": "<title>Насосы</title><h1>Производим насосы</h1><a href='/kontakty'>Контакты</a>",
    "www.firma.ru/kontakty": CONTACTS,
}


class Nobody:
    async def look_up(self, domains: Iterable[str]) -> Mapping[str, TakesMail]:
        return dict.fromkeys(domains, TakesMail.UNKNOWN)


def enrich(store: SqlStore, web: Web, mail: MailDomains | None = None, limit: int | None = None) -> Enriched:
    async def run(there: StandIn) -> Enriched:
        return await Enricher(
            store=store,
            crawler=crawler(GuardedNetwork(stand_in=there)),
            sites=site_reader(),
            mail=mail or Nobody(),
            worker="w",
            at_once=4,
            lease=timedelta(minutes=3),
        ).run(limit)

    return web.run(run)


def contacts_of(prospects: Prospects, domain: str) -> dict[str, Contact]:
    company = prospects.company(domain)
    kept = prospects.store.contacts.of(DEFAULT_TENANT, [company.id])[company.id]
    return {contact.seen.value: contact for contact in kept}


@pytest.fixture
def prospects(shared_store: SqlStore) -> Prospects:
    return Prospects(shared_store)


def test_a_site_becomes_contacts_facts_and_numbers(prospects: Prospects) -> None:
    prospects.find("firma.ru")

    assert enrich(prospects.store, Web(SITE)) == Enriched(visited=1, with_contacts=1, new_contacts=2)

    company = prospects.company("firma.ru")
    assert (company.status, company.city) == (CompanyStatus.ENRICHED, "Казань")
    assert (company.inn, company.ogrn) == ("7707083893", "1027700132195")
    facts = {fact.fact: (fact.value, fact.source) for fact in company.facts}
    assert facts["heading"] == ("Производим насосы", "https://www.firma.ru/")
    kept = contacts_of(prospects, "firma.ru")
    assert kept["info@firma.ru"].primary
    assert kept["info@firma.ru"].seen.source_url == "https://www.firma.ru/kontakty"
    assert kept["+78432334455"].primary


def test_a_second_run_finds_nobody_waiting(prospects: Prospects) -> None:
    prospects.find("firma.ru")
    enrich(prospects.store, Web(SITE))
    web = Web(SITE)

    assert enrich(prospects.store, web) == Enriched()
    assert web.asked == []


def test_a_visit_that_died_is_done_again_without_second_rows(prospects: Prospects) -> None:
    """Its contacts were kept, and it was not settled: the lease runs out."""
    prospects.find("firma.ru")
    store = prospects.store
    settle, store.companies.visited = store.companies.visited, lambda *_: False  # type: ignore[method-assign]
    enrich(store, Web(SITE))
    before = contacts_of(prospects, "firma.ru")
    store.companies.visited = settle  # type: ignore[method-assign]
    later = store.ledger.now() + timedelta(minutes=4)
    [visit] = store.companies.take_visits("w2", 10, later, timedelta(0))
    store.companies.put_off(visit, store.ledger.now(), "", later)

    assert enrich(store, Web(SITE)).new_contacts == 0
    assert contacts_of(prospects, "firma.ru").keys() == before.keys()
    assert prospects.company("firma.ru").status is CompanyStatus.ENRICHED


def test_a_site_that_moved_leads_to_its_new_domain(prospects: Prospects) -> None:
    prospects.find("staroe.ru")
    web = Web({"www.staroe.ru/": moved("https://firma.ru/"), "firma.ru/": CONTACTS})

    enrich(prospects.store, web)

    assert prospects.company("firma.ru").id == prospects.company("staroe.ru").id
    assert prospects.company("staroe.ru").website_url == "https://firma.ru/"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Reply(503, b"", "text/html"), CompanyStatus.NEW),
        (Reply(404, b"", "text/html"), CompanyStatus.UNREACHABLE),
    ],
)
def test_trouble_that_passes_is_tried_again_later(
    prospects: Prospects, answer: Reply, status: CompanyStatus
) -> None:
    prospects.find("firma.ru")

    done = enrich(prospects.store, Web({"www.firma.ru/": answer}))

    assert prospects.company("firma.ru").status is status
    assert (done.put_off, done.unreachable) == ((1, 0) if status is CompanyStatus.NEW else (0, 1))


def test_a_site_without_contacts_says_so(prospects: Prospects) -> None:
    prospects.find("firma.ru")

    enrich(prospects.store, Web({"www.firma.ru/": "Здесь ничего нет, кроме слов, и писать некуда."}))

    assert prospects.company("firma.ru").status is CompanyStatus.NO_CONTACTS


def test_many_sites_at_once_each_visited_once(prospects: Prospects) -> None:
    domains = [f"firma{number}.ru" for number in range(12)]
    prospects.find(*domains)
    web = Web({f"www.{domain}/": f'<a href="mailto:a@{domain}">x</a>' for domain in domains})

    assert enrich(prospects.store, web, limit=10).visited == 10
    assert enrich(prospects.store, web).visited == 2
    assert sorted(name for name in web.asked if name.endswith("ru/")) == sorted(
        f"www.{domain}/" for domain in domains
    )


def test_domains_are_asked_whether_they_take_mail() -> None:
    zone = {
        "firma.ru": {"MX": ["10 mx.firma.ru."]},
        "by-address.ru": {"A": ["192.0.2.1"]},
        "null-mx.ru": {"MX": ["0 ."], "A": ["192.0.2.1"]},
        "no-mail.ru": {"TXT": ['"x"']},
    }
    with DnsServer(zone) as server:
        answers = asyncio.run(MailDomains(Records(server.address)).look_up([*zone, "no-such.ru"]))
    assert answers == {
        "firma.ru": TakesMail.YES,
        "by-address.ru": TakesMail.YES,
        "null-mx.ru": TakesMail.NO,
        "no-mail.ru": TakesMail.NO,
        "no-such.ru": TakesMail.NO,
    }


def test_silent_dns_is_unknown() -> None:
    with DnsServer({}, broken=True) as server:
        answers = asyncio.run(MailDomains(Records(server.address)).look_up(["firma.ru"]))
    assert answers == {"firma.ru": TakesMail.UNKNOWN}
