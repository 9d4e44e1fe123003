"""The working parts of prospecting."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sendonce.settings import Settings
from sendonce.wiring.house import worker_name

if TYPE_CHECKING:
    from sendonce.adapters.contacts.reader import ContactReader
    from sendonce.adapters.web.guarded_network import StandIn
    from sendonce.flows.prospecting.enrich_companies import Enricher
    from sendonce.ports.prospecting import Crawler, MailDomains, ProspectingStore, Sites


def site_reader() -> Sites:
    from sendonce.adapters.web.site_reader import site_reader

    return site_reader()


def contact_reader() -> ContactReader:
    from sendonce.adapters.contacts.reader import ContactReader
    from sendonce.adapters.web.public_suffixes import public_suffixes
    from sendonce.adapters.web.site_reader import site_reader

    return ContactReader(site_reader(), public_suffixes())


def crawler(settings: Settings) -> Crawler:
    from sendonce.adapters.contacts.page_reader import PageReader
    from sendonce.adapters.web.crawler import VisitLimits, WebCrawler
    from sendonce.adapters.web.guarded_network import GuardedNetwork
    from sendonce.adapters.web.page_fetch import FetchLimits

    limits = VisitLimits(
        pages=settings.crawl_pages,
        seconds=settings.crawl_visit_seconds,
        pause=settings.crawl_pause_seconds,
        fetch=FetchLimits(seconds=min(FetchLimits().seconds, settings.crawl_visit_seconds)),
    )
    network = GuardedNetwork(stand_in=_stand_in(settings.web_stand_in))
    return WebCrawler(site_reader(), PageReader(contact_reader()), network, limits, settings.crawl_agent_url)


def enricher(settings: Settings, store: ProspectingStore) -> Enricher:
    from sendonce.flows.prospecting.enrich_companies import Enricher

    return Enricher(
        store=store,
        crawler=crawler(settings),
        sites=site_reader(),
        mail=_mail_domains(settings),
        worker=worker_name(settings),
        at_once=settings.crawl_concurrency,
        lease=timedelta(seconds=2 * settings.crawl_visit_seconds + 60),
    )


def _mail_domains(settings: Settings) -> MailDomains:
    from sendonce.adapters.web.dns_records import Records
    from sendonce.adapters.web.mail_domains import MailDomains

    rehearsal = bool(settings.web_stand_in) and not settings.dns_server
    return MailDomains(None if rehearsal else Records(settings.dns_server or None))


def _stand_in(url: str) -> StandIn | None:
    from sendonce.adapters.web.guarded_network import StandIn

    parts = urlsplit(url)
    return StandIn(parts.hostname or "", parts.port or 80) if url else None
