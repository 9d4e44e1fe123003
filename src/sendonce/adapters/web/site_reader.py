"""From an address on the web to the company that it belongs to, without any network call."""

from __future__ import annotations

from functools import cache, lru_cache

import idna

from sendonce.adapters.web.public_suffixes import PublicSuffixes, public_suffixes, read_names
from sendonce.adapters.web.urls import read_url
from sendonce.domain.prospecting.sites import KnownSites, Site, SiteKind, is_of_a_state, is_reserved

KNOWN_FILE = "known_sites.txt"


class SiteReader:
    def __init__(self, suffixes: PublicSuffixes, known: KnownSites) -> None:
        self._suffixes = suffixes
        self._known = known
        # A search finds many pages of few hosts.
        self._judged = lru_cache(maxsize=65_536)(self._judge)

    def read(self, text: str) -> Site:
        address = read_url(text)
        if address is None:
            return Site(text, None, None, SiteKind.INVALID)
        if address.is_ip:
            return Site(text, address.url, None, SiteKind.BLOCKED)
        domain, kind = self._judged(address.host)
        return Site(text, address.url, domain, kind)

    def _judge(self, host: str) -> tuple[str | None, SiteKind]:
        domain = self._suffixes.registrable(host)
        return domain, self._known.kind_of(host) or self._kind(host, domain)

    def _kind(self, host: str, domain: str | None) -> SiteKind:
        # www.ucoz.ru is the builder's own site, not one of a customer called "www".
        bare = host.removeprefix("www.")
        if bare != host and "." in bare and self._suffixes.registrable(bare) is None:
            return self._kind(bare, None)
        if is_reserved(host):
            return SiteKind.BLOCKED
        if not self._suffixes.is_listed(host):
            return SiteKind.INVALID
        if is_of_a_state(self._suffixes.suffix(host) or ""):
            return SiteKind.GOVERNMENT
        if domain is not None:
            return SiteKind.COMPANY
        return SiteKind.SITE_BUILDER if self._suffixes.is_builder(host) else SiteKind.INVALID


@cache
def site_reader() -> SiteReader:
    return SiteReader(public_suffixes(), KnownSites(_known_kinds()))


def _known_kinds() -> dict[str, SiteKind]:
    """Lines are domains; a line in brackets names the kind of those that follow."""
    kinds: dict[str, SiteKind] = {}
    kind = SiteKind.BLOCKED
    for line in read_names(KNOWN_FILE):
        if line.startswith("["):
            kind = SiteKind(line.strip("[]"))
        else:
            kinds[idna.encode(line).decode()] = kind
    return kinds
