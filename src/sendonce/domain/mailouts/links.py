"""Addresses that a letter may link to, and where in them a variable may stand.

A value comes from a list that others filled in. Were it allowed to begin an address, it could be
``javascript:…`` or another site; so scheme and host are the letter's own words, and a variable stands
after them, percent-encoded: ``https://example.com/?u={{ id }}``.
"""

from __future__ import annotations

import re
from typing import NewType
from urllib.parse import quote

from sendonce.domain.engine.templates import VARIABLE, map_literals, url_marked
from sendonce.errors import BadInput

Url = NewType("Url", str)
"""An address fit for a letter. Made by ``link_url`` and ``image_url`` only."""

# WHATWG URL §4.4: browsers drop these wherever they stand, "java\nscript:" included.
_DROPPED = re.compile(r"[\t\r\n]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_SITE = re.compile(
    r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\s/?#@\\:\"'<>\[\]{}%]+)(:\d{1,5})?(?=[/?#]|$)", re.IGNORECASE
)
_TELEPHONE = re.compile(r"tel:\+?[0-9().\-]+$", re.IGNORECASE)
_MAILTO = re.compile(r"mailto:[^\s?@\"<>\\]+@[^\s?@\"<>\\]+(\?|$)", re.IGNORECASE)
# All of ASCII that may stand in a URL; the rest, quotes and brackets of markup first, is encoded.
_SAFE = "!#$%&'()*+,-./:;=?@[]_~"


def link_url(source: str) -> Url | None:
    """The address with its variables marked ``| url``, or None if it cannot be mailed.

    Web, mail and telephone addresses can. Raises BadInput for a variable in the scheme or the host.
    """
    source = source.strip()
    scheme = _SCHEME.match(_DROPPED.sub("", source[:100]))
    if scheme is None and VARIABLE.match(source):
        raise _misplaced(source)
    match scheme[1].lower() if scheme else "":
        case "http" | "https":
            return _web(source)
        case "mailto":
            return _whole(source, _MAILTO)
        case "tel":
            return _whole(source.replace(" ", ""), _TELEPHONE)
        case _:
            return None


def image_url(source: str) -> Url | None:
    """The same for an image: on the web or nowhere, since Gmail shows no ``data:``."""
    url = link_url(source)
    return url if url and url.lower().startswith("http") else None


def is_local(source: str) -> bool:
    """Whether it can only be a file beside the letter: no scheme, no site, no root, no variable."""
    bare = source.strip()
    elsewhere = bare.startswith(("/", "\\", "#", "?")) or "{{" in bare or _CONTROL.search(bare) is not None
    return bool(bare) and not elsewhere and _SCHEME.match(bare) is None


def _web(source: str) -> Url | None:
    url = _encoded(source)
    if url is None:
        return None
    variable = VARIABLE.search(url)
    head = url[: variable.start()] if variable else url
    site = _SITE.match(head)
    if variable and (site is None or site.end() == len(head)):
        raise _misplaced(source)
    host = _ascii_host(site[2]) if site else None
    if site is None or host is None:
        return None
    return Url(f"{site[1].lower()}://{host}{site[3] or ''}{url_marked(url[site.end() :])}")


def _whole(source: str, pattern: re.Pattern[str]) -> Url | None:
    """An address without a host: variables may stand after its ``?`` only."""
    url = _encoded(source)
    if url is None:
        return None
    variable = VARIABLE.search(url)
    if variable and "?" not in url[: variable.start()]:
        raise _misplaced(source)
    return Url(url_marked(url)) if pattern.match(url) else None


def _encoded(source: str) -> str | None:
    literals = _DROPPED.sub("", VARIABLE.sub("", source))
    if _CONTROL.search(literals):
        return None
    site = _SITE.match(_DROPPED.sub("", source))
    start = len(site[0]) if site else 0  # a host has its own encoding
    text = _DROPPED.sub("", source)
    return text[:start] + map_literals(text[start:], lambda literal: quote(literal, safe=_SAFE))


def _ascii_host(host: str) -> str | None:
    if host.isascii():
        return host.lower()
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except UnicodeError:
        return None


def _misplaced(source: str) -> BadInput:
    return BadInput(
        f"The address {source!r} has a variable where its site should be, so a value could lead readers "
        "anywhere. Write the site in the letter and the variable after it: https://example.com/{{ page }}"
    )
