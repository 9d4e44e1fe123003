"""Answers for every site of the made-up web, told apart by the Host header."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sendonce.sandbox.companies import pages
from sendonce.sandbox.companies.hostile import HTML, hostile_reply, moved
from sendonce.sandbox.companies.registry import MadeUpCompany, Manner, make_companies
from sendonce.sandbox.http_server import Reply, Request

# Seconds before each answer of a slow site.
_SLOW = 0.5
TRUTH_FILE = "companies.json"
_NOTHING = Reply(404, b"<h1>404</h1>", HTML)
# What a search finds beside companies.
_OTHERS = (
    ("https://www.avito.ru/kazan/oborudovanie", "Оборудование: купить на Авито", "Объявления в Казани"),
    ("https://vk.com/club77", "Заводы Казани | ВКонтакте", "Сообщество"),
    ("https://2gis.ru/kazan/search/zavody", "Заводы на карте", "Адреса и телефоны"),
    ("https://ru.wikipedia.org/wiki/Завод", "Завод — Википедия", "Промышленное предприятие"),
    ("https://www.rusprofile.ru/id/1", "Реквизиты организации", "ИНН, ОГРН, учредители"),
)


class CompanyWeb:
    """``count`` companies, the same for the same seed."""

    def __init__(self, count: int, seed: int) -> None:
        self.companies = make_companies(count, seed)
        self._hosts = dict(self._names())

    def _names(self) -> Iterator[tuple[str, MadeUpCompany]]:
        for company in self.companies:
            yield company.domain, company
            yield f"www.{company.domain}", company
            yield f"old-{company.domain}", company

    def results(self) -> list[tuple[str, str, str]]:
        """What a search finds: (url, title, snippet), some companies twice, among other sites."""
        found: list[tuple[str, str, str]] = []
        for company in self.companies:
            prefix = "old-" if company.manner is Manner.MOVED else ""
            host = prefix + company.domain
            text = f"{company.what}. {company.city}. Цены, доставка, гарантия."
            found.append((f"https://{host}/", f"{company.what} — {company.city}", text))
            if company.number % 5 == 0:
                url = f"http://www.{host}/catalog/?utm_source=yandex"
                found.append((url, f"Каталог: {company.product}", text))
            if company.number % 20 == 0:
                found.append(_OTHERS[company.number // 20 % len(_OTHERS)])
        return found

    def truth(self) -> dict[str, Any]:
        """What a perfect reader would know of each company, by its domain."""
        return {
            company.domain: {
                "name": company.name,
                "city": company.city,
                "manner": company.manner.value,
                "readable": company.readable,
                "emails": sorted(company.emails),
                "phones": sorted(company.phones),
                "inn": company.inn,
                "ogrn": company.ogrn,
                "same_as": company.same_as,
                "injected": list(company.injected),
            }
            for company in self.companies
        }

    def write_truth(self, directory: Path) -> None:
        text = json.dumps(self.truth(), ensure_ascii=False, indent=1)
        (directory / TRUTH_FILE).write_text(text, encoding="utf-8")

    def environment(self, endpoint: str) -> dict[str, str]:
        return {"WEB_STAND_IN": endpoint}

    def knows(self, request: Request) -> bool:
        """Whether it is asked for one of these sites. Any other host counts as one that does not exist."""
        return _host(request) in self._hosts

    async def answer(self, request: Request) -> Reply:
        host = _host(request)
        company = self._hosts[host]
        if company.manner is Manner.SLOW:
            await asyncio.sleep(_SLOW)
        if request.path == "/robots.txt":
            return _robots(company)
        if host != company.domain and (elsewhere := _elsewhere(company, host, request.path)):
            return elsewhere
        return _page(company, unquote(request.path))


def _host(request: Request) -> str:
    return request.headers.get("host", "").lower().partition(":")[0]


def _robots(company: MadeUpCompany) -> Reply:
    if company.manner is Manner.FORBIDDEN:
        return Reply(200, b"User-agent: *\nDisallow: /\n", "text/plain")
    if company.manner is Manner.SITEMAP:
        text = f"User-agent: *\nDisallow: /admin/\nSitemap: https://{company.domain}/map.xml\n"
        return Reply(200, text.encode(), "text/plain")
    return _NOTHING


def _elsewhere(company: MadeUpCompany, host: str, path: str) -> Reply | None:
    """Each site has one name; its others lead there."""
    if host.startswith("www."):
        return None if company.manner is Manner.WWW else moved(f"https://{company.domain}{path}")
    return moved(f"https://{company.domain}/") if company.manner is Manner.MOVED else _NOTHING


def _page(company: MadeUpCompany, path: str) -> Reply:
    if not company.readable:
        return hostile_reply(company.manner, path)
    if path == "/" and company.manner is Manner.REFRESH:
        return Reply(200, b'<meta http-equiv="refresh" content="0; url=/index.html">', HTML)
    if path in ("/", "/index.html", "/catalog/"):
        return _written(company, pages.home_page(company))
    if path == pages.contact_place(company)[1]:
        return _written(company, pages.contact_page(company))
    if path == "/map.xml":
        return Reply(200, pages.sitemap(company).encode(), "application/xml")
    return _NOTHING


def _written(company: MadeUpCompany, text: str) -> Reply:
    """In the site's charset, which every third one states in its header only, and some nowhere at all."""
    data = text.encode(company.charset, "xmlcharrefreplace")
    kind = f"{HTML}; charset={company.charset}" if company.number % 3 != 1 else HTML
    if company.manner is Manner.GZIP:
        return Reply(200, gzip.compress(data), kind, (("Content-Encoding", "gzip"),))
    return Reply(200, data, kind)
