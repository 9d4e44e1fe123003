"""A page read once for all that a visit needs: contacts, facts, and where its links lead."""

from __future__ import annotations

import re

from sendonce.adapters.contacts.charset import page_in_utf8
from sendonce.adapters.contacts.facts import facts_of
from sendonce.adapters.contacts.markup import MAX_PAGE, Page, read_page
from sendonce.adapters.contacts.reader import ContactReader
from sendonce.adapters.web.urls import find_place
from sendonce.domain.prospecting.readings import Link, PageReading

_MOST_LINKS = 2000
# A page with fewer words than that, and with scripts, is put together in a browser.
_FEW_WORDS = 15
# At once or soon; news sites load themselves again every few minutes.
_REFRESH = re.compile(r"\s*\d(?:\.\d*)?\s*[;,]\s*url\s*=\s*[\"']?([^\"'\s]{1,2000})", re.IGNORECASE)


class PageReader:
    def __init__(self, contacts: ContactReader) -> None:
        self._contacts = contacts

    def read(self, data: bytes, url: str, charset: str | None = None) -> PageReading:
        page = read_page(page_in_utf8(data[: 2 * MAX_PAGE], charset))
        contacts = self._contacts.read_page(page, url)
        links = _links_of(page, url)
        sends_to = _sends_to(page, url)
        empty = len(page.seen.text.split()) < _FEW_WORDS and not links and not contacts.emails
        needs_script = empty and bool(page.scripts) and sends_to is None
        return PageReading(url, contacts, facts_of(page, url), links, needs_script, sends_to)


def _links_of(page: Page, url: str) -> list[Link]:
    base = page.tree.css_first("base[href]")
    place = find_place(base.attributes.get("href") or "", url) if base is not None else None
    start = place.url if place else url
    found: list[Link] = []
    for node in page.tree.css("a[href]")[:_MOST_LINKS]:
        there = find_place((node.attributes.get("href") or "").partition("#")[0], start)
        if there is not None:
            text = node.text(separator=" ") or node.attributes.get("title") or ""
            found.append(Link(there.url, text[:200]))
    return found


def _sends_to(page: Page, url: str) -> str | None:
    for node in page.select('meta[http-equiv="refresh" i]', b"refresh"):
        found = _REFRESH.match(node.attributes.get("content") or "")
        place = find_place(found[1], url) if found else None
        if place is not None and place.url != url:
            return place.url
    return None
