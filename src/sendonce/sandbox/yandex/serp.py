"""The XML of an answer as Yandex writes it: highlighted words, tags that come and go, repeated domains."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit
from xml.sax.saxutils import escape, quoteattr

from sendonce.sandbox.yandex.sites import BYSTANDERS, FindableSite

NOTHING_FOUND = (15, "Искомая комбинация слов нигде не встречается")
_WORD = re.compile(r"\w{4,}")


def found_sites(text: str, sites: Sequence[FindableSite]) -> list[FindableSite]:
    """Those that a word of the query is about, by its beginning; all of them if there is none."""
    stems = [word[:5].lower() for word in _WORD.findall(text)]
    about = [site for site in sites if any(stem in f"{site.title} {site.snippet}".lower() for stem in stems)]
    return about or list(sites)


def page_of(sites: Sequence[FindableSite], page: int, size: int) -> list[FindableSite]:
    """Bystanders come first, and a later page begins with domains that an earlier one has shown."""
    everything = [*BYSTANDERS, *sites]
    shown = everything[page * size : (page + 1) * size]
    if page and shown:
        again = everything[len(BYSTANDERS) :][:2]
        shown += [
            FindableSite(f"{site.url.rstrip('/')}/dostavka?utm_source=yandex", site.title) for site in again
        ]
    return shown


def answer_xml(text: str, sites: Sequence[FindableSite], page: int) -> str:
    groups = "".join(_group(site, number, text) for number, site in enumerate(sites))
    return _envelope(
        text,
        page,
        f'<found priority="all">{len(sites)}</found><results><grouping attr="d" mode="deep">'
        f'<page first="1" last="{len(sites)}">{page}</page>{groups}</grouping></results>',
    )


def error_xml(text: str, page: int, code: int, message: str) -> str:
    return _envelope(text, page, f'<error code="{code}">{escape(message)}</error>')


def _envelope(text: str, page: int, response: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<yandexsearch version="1.0">'
        f"<request><query>{escape(text)}</query><page>{page}</page></request>"
        f'<response date="20261116T010203"><reqid>sandbox</reqid>{response}</response></yandexsearch>'
    )


def _group(site: FindableSite, number: int, text: str) -> str:
    host = urlsplit(site.url).hostname or ""
    title = _highlighted(site.title, text)
    parts = [f"<url>{escape(site.url)}</url>", f"<domain>{escape(host)}</domain>", f"<title>{title}</title>"]
    # Of real answers two thirds have passages, and one third has a headline.
    if site.snippet and number % 3:
        passage = _highlighted(site.snippet, text)
        parts.append(f"<passages><passage>{passage}</passage></passages>")
    elif site.snippet:
        parts.append(f"<headline>{escape(site.snippet)}</headline>")
    if number % 4:
        parts.append(
            f"<modtime>20250101T000000</modtime><properties><lang>{site.language}</lang></properties>"
        )
    return (
        f'<group><categ attr="d" name={quoteattr(host)}/><doccount>1</doccount><doc id="Z{number:08X}">'
        f"{''.join(parts)}</doc></group>"
    )


def _highlighted(text: str, query: str) -> str:
    stems = "|".join(re.escape(word[:5]) for word in _WORD.findall(query))
    marked = re.sub(rf"(?i)\b(?:{stems})\w*", "\x01\\g<0>\x02", text) if stems else text
    return escape(marked).replace("\x01", "<hlword>").replace("\x02", "</hlword>")
