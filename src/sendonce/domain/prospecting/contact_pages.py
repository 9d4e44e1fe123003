"""Which pages of a site tell how to reach the company: by the words of links and paths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from sendonce.domain.prospecting.readings import Link

# The surer it is to find contacts there, the higher. A link's text is what people read, in Russian or
# English; paths often are transliterated: kontakty, rekvizity, o-kompanii.
_WORDS = {
    5: r"контакт|kontakt|contact|kontact|contatti|contacto|impressum",
    4: r"реквизит|rekvizit|requisit|карточк\w* (?:компании|предприятия|организации)|kartochka",
    3: r"связаться|свяжитесь|обратная связь|связь с нами|svyaz|feedback|get in touch|write to us|"
    r"адрес|address",
    2: r"о компании|о нас|о фирме|о заводе|о предприятии|об организации|about|o[-_]?kompan|o[-_]nas|"
    r"company|kompaniya|компания|предприятие|who we are|офис|филиал|представительств|offices|branches|"
    r"где купить",
    1: r"команда|сотрудники|руководство|team|staff|management|отдел продаж|юридическая информация|"
    r"legal notice",
}
_SCORED = tuple((score, re.compile(words, re.IGNORECASE)) for score, words in _WORDS.items())
# Pages with the same words that tell nothing of the kind, and files.
_OTHERS = re.compile(
    r"contact-?lens|контактн\w+ (?:линз|сварк|групп|сет|рельс|площадк)|kontaktnye-(?:linz|svark|grupp)|"
    r"\.(?:pdf|docx?|xlsx?|zip|rar|jpe?g|png|gif|svg|webp|mp4|ics|vcf)\Z|/(?:tag|author|search|cart|login|blog|news)/",
    re.IGNORECASE,
)
_LONGEST_TEXT = 80

# Where to try if no link tells.
USUAL_PATHS = ("/contacts/", "/kontakty/", "/contact/", "/contacts.html", "/about/")


def contact_links(links: Iterable[Link], most: int) -> list[str]:
    """The addresses to visit, the most promising first; among equals the first on the page."""
    best: dict[str, int] = {}
    for link in links:
        score = _score(link)
        if score > best.get(link.url, 0):
            best[link.url] = score
    return sorted(best, key=lambda url: -best[url])[:most]


def _score(link: Link) -> int:
    path = readable_path(link.url)
    text = " ".join(link.text.split())
    if _OTHERS.search(path) or _OTHERS.search(text):
        return 0
    # A whole paragraph in a link is news that happens to name a word.
    told = _score_of(text) if len(text) <= _LONGEST_TEXT else 0
    return max(2 * told, 2 * _score_of(path) - 1, 0)


def _score_of(text: str) -> int:
    return next((score for score, words in _SCORED if words.search(text)), 0)


def readable_path(url: str) -> str:
    """The path and query without percent-encoding. Old Russian sites encode theirs in windows-1251."""
    rest = url.partition("://")[2].partition("/")[2]
    data = unquote_to_bytes(rest)
    try:
        return "/" + data.decode("utf-8")
    except UnicodeDecodeError:
        return "/" + data.decode("cp1251", "replace")
