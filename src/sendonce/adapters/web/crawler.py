"""A visit to a company's site: robots.txt, the home page, and the few pages that tell how to reach it."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from dataclasses import dataclass, field
from functools import cached_property

from sendonce.adapters.web.guarded_network import GuardedNetwork
from sendonce.adapters.web.page_fetch import Answer, FetchLimits, PageFetcher, PageRefused
from sendonce.adapters.web.politeness import Hosts
from sendonce.adapters.web.robots import MOST_BYTES, Robots, pages_of_sitemap, robots_of
from sendonce.adapters.web.urls import Place, find_place
from sendonce.domain.prospecting.contact_pages import USUAL_PATHS, contact_links
from sendonce.domain.prospecting.readings import Link, PageReading, Refusal, SiteReading
from sendonce.domain.prospecting.sites import SiteKind
from sendonce.ports.prospecting import PageReadings, Sites

log = logging.getLogger(__name__)

AGENT = "sendonce"
_PAGES = ("text/html", "application/xhtml+xml", "")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w:.-]{2,40})", re.IGNORECASE)
_COME_LATER = (429, 503)


@dataclass(frozen=True, slots=True)
class VisitLimits:
    """``pause`` is the least between two requests to a host; robots.txt may ask for more."""

    pages: int = 5
    seconds: float = 60.0
    pause: float = 1.0
    redirects: int = 5
    fetch: FetchLimits = field(default_factory=FetchLimits)


class WebCrawler:
    """``agent_page`` is where a site's owner reads who visits and how to stop it."""

    def __init__(
        self,
        sites: Sites,
        reader: PageReadings,
        network: GuardedNetwork,
        limits: VisitLimits,
        agent_page: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._sites = sites
        self._reader = reader
        self._network = network
        self._limits = limits
        self._given_tls = tls
        self._hosts = Hosts()
        self._agent = f"{AGENT}/1.0 (+{agent_page})" if agent_page else f"{AGENT}/1.0"

    # Reading the certificates of the system takes 20 ms.
    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or ssl.create_default_context()

    async def visit(self, url: str) -> SiteReading:
        fetcher = PageFetcher(self._network, self._tls, self._agent, self._limits.fetch)
        visiting = _Visiting(url, self._sites, self._reader, fetcher, self._hosts, self._limits)
        try:
            async with asyncio.timeout(self._limits.seconds):
                await visiting.go()
        except TimeoutError:
            visiting.refuse(url, f"the visit takes more than {self._limits.seconds:g} s", passing=True)
        except Exception as exc:
            log.exception("a visit failed", extra={"fields": {"url": url}})
            visiting.refuse(url, f"reading it failed ({type(exc).__name__}): please report this site")
        finally:
            visiting.leave()
            await fetcher.close()
        return visiting.result()


class _Visiting:
    """One visit under way. What it has read so far counts, whatever ends it."""

    def __init__(
        self,
        start: str,
        sites: Sites,
        reader: PageReadings,
        fetcher: PageFetcher,
        hosts: Hosts,
        limits: VisitLimits,
    ) -> None:
        self._start = start
        self._sites = sites
        self._reader = reader
        self._fetcher = fetcher
        self._turn = hosts.turn()
        self._limits = limits
        self._robots: dict[str, Robots] = {}
        self._home: str | None = None
        self._pages: list[PageReading] = []
        self._refusals: list[Refusal] = []
        self._seen: set[str] = set()
        self._no_connection = False
        self._sent_away = False

    def result(self) -> SiteReading:
        return SiteReading(self._start, self._home, tuple(self._pages), tuple(self._refusals))

    def leave(self) -> None:
        self._turn.leave()

    def refuse(self, url: str, reason: str, *, passing: bool = False) -> None:
        self._refusals.append(Refusal(url, reason, passing))

    async def go(self) -> None:
        home = await self._read_home()
        if home is None:
            return
        self._home = home.url
        if home.needs_script:
            self.refuse(home.url, "it shows nothing without JavaScript")
            return
        for url in await self._contact_pages(home):
            if self._sent_away or len(self._pages) >= self._limits.pages:
                return
            await self._read_page(url)

    # -- which pages ------------------------------------------------------------------------------

    async def _read_home(self) -> PageReading | None:
        """Over https and, where there is none, once over http. An empty page that sends on is not home."""
        home = await self._read_page(self._start)
        if home is None and self._no_connection and self._start.startswith("https://"):
            home = await self._read_page("http" + self._start.removeprefix("https"))
        if home is not None and home.sends_to:
            home = await self._read_page(home.sends_to) or home
        return home

    async def _contact_pages(self, home: PageReading) -> list[str]:
        """By the links of the home page; else by the sitemap; else where such pages usually are."""
        own = self._sites.read(home.url).domain
        # Some of them lead to one page, or to none.
        most = self._limits.pages + 2
        found = contact_links(self._within(own, home.links), most)
        if not found and (sitemap := await self._sitemap(home.url)):
            # A stranger's megabytes are not read on the loop that all visits share.
            found = await asyncio.to_thread(self._named_by, sitemap, own, most)
        if not found:
            found = [place.url for path in USUAL_PATHS if (place := find_place(path, home.url))]
        return found

    def _within(self, domain: str | None, links: list[Link]) -> list[Link]:
        return [link for link in links if self._sites.read(link.url).domain == domain]

    def _named_by(self, sitemap: bytes, domain: str | None, most: int) -> list[str]:
        return contact_links(self._within(domain, [Link(url, "") for url in pages_of_sitemap(sitemap)]), most)

    async def _sitemap(self, home: str) -> bytes:
        named = [text for robots in self._robots.values() for text in robots.sitemaps]
        place = find_place(named[0] if named else "/sitemap.xml", home)
        if place is None or not self._within(self._sites.read(home).domain, [Link(place.url, "")]):
            return b""
        try:
            _, answer = await self._get(place)
        except PageRefused:
            return b""
        return answer.body

    # -- one page ---------------------------------------------------------------------------------

    async def _read_page(self, url: str) -> PageReading | None:
        """None if it is refused, or was read already."""
        place = find_place(url)
        if place is None:
            self.refuse(url, "it is no address of the web")
        elif place.url not in self._seen:
            try:
                return await self._read(place)
            except PageRefused as exc:
                self._no_connection = not exc.connected
                self.refuse(place.url, str(exc), passing=exc.passing)
        return None

    async def _read(self, asked: Place) -> PageReading | None:
        place, answer = await self._get(asked)
        if place.url in self._seen:
            return None
        self._seen |= {asked.url, place.url}
        kind = answer.content_type.partition(";")[0].strip().lower()
        if answer.status != 200:
            passing = answer.status == 429 or answer.status >= 500
            raise PageRefused(f"{place.host} answered {answer.status}", passing=passing)
        if kind not in _PAGES:
            raise PageRefused(f"it is no page but {kind[:60]!r}")
        charset = _CHARSET.search(answer.content_type)
        reading = await asyncio.to_thread(
            self._reader.read, answer.body, place.url, charset[1] if charset else None
        )
        self._pages.append(reading)
        return reading

    async def _get(self, place: Place) -> tuple[Place, Answer]:
        """What is at a place or where it redirects to. Every step is checked and asks robots.txt."""
        for _ in range(self._limits.redirects + 1):
            robots = await self._rules_of(place)
            if not robots.allow(place.url):
                raise PageRefused("its robots.txt does not allow it")
            answer = await self._ask(place, self._limits.fetch.most_bytes, robots.pause)
            if answer.redirect is None:
                self._sent_away = answer.status in _COME_LATER
                return place, answer
            place = _redirected(place, answer.redirect)
        raise PageRefused(f"it redirects more than {self._limits.redirects} times")

    async def _rules_of(self, place: Place) -> Robots:
        origin = f"{place.scheme}://{place.host}"
        if origin not in self._robots:
            robots = await self._read_robots(place)
            if robots is None:
                reason = f"{place.host} is in trouble: it does not even give its robots.txt"
                raise PageRefused(reason, passing=True)
            self._robots[origin] = robots
        return self._robots[origin]

    async def _read_robots(self, place: Place) -> Robots | None:
        there = _redirected(place, "/robots.txt")
        for _ in range(self._limits.redirects + 1):
            answer = await self._ask(there, MOST_BYTES, 0.0)
            if answer.redirect is None:
                return await asyncio.to_thread(robots_of, answer.status, answer.body, AGENT)
            there = _redirected(there, answer.redirect)
        return robots_of(404, b"", AGENT)  # RFC 9309 §2.3.1.2: as if there were none

    def _check(self, place: Place) -> None:
        """A company's site may send us on to another one, and to nowhere else."""
        kind = self._sites.read(place.url).kind
        if kind is not SiteKind.COMPANY:
            raise PageRefused(f"{place.host} is no company's site ({kind.value.replace('_', ' ')})")

    async def _ask(self, place: Place, most_bytes: int, pause: float) -> Answer:
        self._check(place)
        await self._turn.wait_for(place.host, max(pause, self._limits.pause))
        try:
            return await self._fetcher.get(place, most_bytes)
        finally:
            self._turn.asked()


def _redirected(place: Place, location: str) -> Place:
    there = find_place(location, place.url)
    if there is None:
        raise PageRefused("it redirects to what is no address of the web")
    return there
