"""Sites on loopback for a crawler: pages by host and path, and a note of every request."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from sendonce.adapters.contacts.page_reader import PageReader
from sendonce.adapters.contacts.reader import ContactReader
from sendonce.adapters.web.crawler import VisitLimits, WebCrawler
from sendonce.adapters.web.guarded_network import GuardedNetwork, StandIn
from sendonce.adapters.web.public_suffixes import public_suffixes
from sendonce.adapters.web.site_reader import site_reader
from sendonce.domain.prospecting.readings import SiteReading
from sendonce.sandbox.http_server import HttpServer, Reply, Request

T = TypeVar("T")
HASTE = VisitLimits(pause=0.0, seconds=5.0)
Pages = Mapping[str, str | Reply]


def html(text: str, **headers: str) -> Reply:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(body=text.encode(), content_type="text/html; charset=utf-8", headers=named)


def moved(location: str, status: int = 301) -> Reply:
    return Reply(status, b"", "text/html", (("Location", location),))


class Web:
    """``pages`` is "host/path" → page. What is not there is answered with 404."""

    def __init__(self, pages: Pages) -> None:
        self.pages = dict(pages)
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.open_at_once = 0

    async def answer(self, request: Request) -> Reply:
        name = request.headers["host"] + request.path + (f"?{request.query}" if request.query else "")
        self.asked.append(name)
        self.headers.append(request.headers)
        self.open_at_once = max(self.open_at_once, len(self.server.connections))
        page = self.pages.get(name, Reply(404, b"", "text/html"))
        return html(page) if isinstance(page, str) else page

    def run(self, use: Callable[[StandIn], Awaitable[T]]) -> T:
        async def serve() -> T:
            self.server = HttpServer(self.answer, time.time)
            port = await self.server.listen(0)
            try:
                return await use(StandIn("127.0.0.1", port))
            finally:
                await self.server.close()

        return asyncio.run(serve())

    def visit(self, url: str, limits: VisitLimits = HASTE, agent_page: str = "") -> SiteReading:
        return self.run(lambda there: crawler(GuardedNetwork(stand_in=there), limits, agent_page).visit(url))


def crawler(
    network: GuardedNetwork,
    limits: VisitLimits = HASTE,
    agent_page: str = "",
    tls: ssl.SSLContext | None = None,
) -> WebCrawler:
    reader = PageReader(ContactReader(site_reader(), public_suffixes()))
    return WebCrawler(site_reader(), reader, network, limits, agent_page, tls)


def reasons(visit: SiteReading) -> str:
    return "; ".join(refusal.reason for refusal in visit.refusals)


def emails(visit: SiteReading) -> set[str]:
    return {email.value for page in visit.pages for email in page.contacts.emails}
