"""What a page says of its company, as plain short lines: whatever it says is data, and was said in public."""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from sendonce.adapters.contacts.markup import Page
from sendonce.adapters.contacts.structured import organisations
from sendonce.domain.prospecting.companies import Fact
from sendonce.domain.prospecting.readings import FactKind

_LONGEST = {FactKind.DESCRIPTION: 500, FactKind.CITY: 60}
_USUAL_LONGEST = 200
# Control characters and those that nobody sees: a line of a fact is one line.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]+"
)
_DESCRIPTIONS = ("description", "og:description")
_NAMES = ("og:site_name", "application-name")
# ООО «Насосмаш», АО "Завод": a name that says by its form that it is one.
_LEGAL_NAME = re.compile(
    '(?<!\\w)(ООО|ОАО|ЗАО|ПАО|НАО|АО|НПО|НПП|НПФ|ТД|ГК|ПК)\\s{0,2}[«"“„]([^«»"“”„<>\\n]{2,60})[»"”“]'
)
# «г. Казань», «город Набережные Челны», «г.Ростов-на-Дону»
_CAPITALISED = "[А-ЯЁ][а-яё]{2,20}"
_CITY = re.compile(
    rf"(?<![А-Яа-яЁё])(?:г\.|гор\.|город)\s{{0,2}}({_CAPITALISED}(?:[- ]{_CAPITALISED}|-на-{_CAPITALISED})?)"
)


def facts_of(page: Page, url: str) -> list[Fact]:
    """Each kind at most once, by the best place that states it."""
    found: dict[FactKind, str] = {}
    for kind, text in _stated(page):
        value = _plain(text, _LONGEST.get(kind, _USUAL_LONGEST))
        if value:
            found.setdefault(kind, value)
    return [Fact(kind, value, url) for kind, value in found.items()]


def _stated(page: Page) -> Iterator[tuple[FactKind, str]]:
    for name, city in organisations(page.scripts):
        yield FactKind.NAME, name
        yield FactKind.CITY, city
    metas = _metas(page)
    for name in _NAMES:
        yield FactKind.NAME, metas.get(name, "")
    title = _text(page.tree.css_first("title"))
    for text in (title, page.seen.text):
        legal = _LEGAL_NAME.search(text)
        yield FactKind.NAME, f"{legal[1]} «{legal[2].strip()}»" if legal else ""
    yield FactKind.TITLE, title
    for name in _DESCRIPTIONS:
        yield FactKind.DESCRIPTION, metas.get(name, "")
    yield FactKind.HEADING, _text(page.tree.css_first("h1"))
    for node in page.select('[itemprop="addressLocality"]', b"sloca"):
        yield FactKind.CITY, node.attributes.get("content") or _text(node)
    written = _CITY.search(page.seen.text)
    yield FactKind.CITY, written[1] if written else ""


def _metas(page: Page) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in page.tree.css("meta[content]")[:100]:
        name = (node.attributes.get("name") or node.attributes.get("property") or "").lower()
        found.setdefault(name, node.attributes.get("content") or "")
    return found


def _text(node: LexborNode | None) -> str:
    return node.text(separator=" ") if node is not None else ""


def _plain(text: str, longest: int) -> str:
    line = " ".join(_UNSEEN.sub(" ", text[: 8 * longest]).split())
    if len(line) <= longest:
        return line
    return line[:longest].rpartition(" ")[0] or line[:longest]
