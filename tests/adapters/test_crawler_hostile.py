"""Hostile sites: nothing private is ever asked, and no answer takes more than its bytes and seconds."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpcore
import pytest
import trustme

from sendonce.adapters.web import crawler as crawler_module
from sendonce.adapters.web.crawler import VisitLimits, WebCrawler
from sendonce.adapters.web.guarded_network import AddressRefused, GuardedNetwork, Resolve, StandIn
from sendonce.adapters.web.page_fetch import FetchLimits
from sendonce.adapters.web.site_reader import site_reader
from sendonce.domain.prospecting.readings import PageReading, SiteReading
from sendonce.sandbox.http_server import Ending, Reply
from tests.adapters.http_server import ScriptedServer, answer, dripping
from tests.adapters.web_stage import HASTE, Web, crawler, emails, html, moved, reasons

QUICK = VisitLimits(pause=0.0, seconds=5.0, fetch=FetchLimits(most_bytes=100_000, seconds=0.3))
PRIVATE = [
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
    *("169.254.169.254", "168.63.129.16", "192.0.0.8", "198.18.0.1", "224.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2001::1", "::7f00:1", "fec0::1", "2001:db8::1"),
]


class Wire(httpcore.AnyIOBackend):
    """Notes where it is asked to connect to, and connects nowhere."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def connect_tcp(self, host: str, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        self.asked.append(host)
        raise httpcore.ConnectError


def answers(*rounds: list[str]) -> Resolve:
    """Each look-up gives the next round; the last one stays."""
    left = list(rounds)

    async def resolve(_host: str, _port: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


def guarded(monkeypatch: pytest.MonkeyPatch, *rounds: list[str]) -> tuple[GuardedNetwork, Wire]:
    wire = Wire()
    monkeypatch.setattr(httpcore, "AnyIOBackend", lambda: wire)
    return GuardedNetwork(answers(*rounds)), wire


@pytest.mark.parametrize("others", [[], ["93.184.216.34"]])
def test_a_name_with_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch, others: list[str]) -> None:
    """One among public ones is enough."""
    network, wire = guarded(monkeypatch, *([*others, address] for address in PRIVATE))

    async def visit_all() -> list[SiteReading]:
        one = crawler(network)
        return [await one.visit(f"http://firma{number}.ru/") for number in range(len(PRIVATE))]

    for visit in asyncio.run(visit_all()):
        assert "is not on the public internet" in reasons(visit), visit
    assert wire.asked == []


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    network, wire = guarded(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])

    visit = asyncio.run(crawler(network).visit("https://firma.ru/"))

    # The second look-up is that of http, after https was refused: the name has changed its mind by then.
    assert wire.asked == ["93.184.216.34"]
    assert "not on the public internet" in visit.refusals[-1].reason


class Detour(httpcore.AnyIOBackend):
    """Every address leads to a port of this machine, as a router might do it."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def connect_tcp(
        self, host: str, port: int, *_: object, **__: object
    ) -> httpcore.AsyncNetworkStream:
        return await super().connect_tcp("127.0.0.1", self._port)


@pytest.mark.parametrize(("certified", "home"), [("firma.ru", "https://firma.ru/"), ("other.ru", None)])
def test_the_certificate_is_checked_for_the_name(
    monkeypatch: pytest.MonkeyPatch, certified: str, home: str | None
) -> None:
    authority = trustme.CA()
    server_side, client_side = (
        ssl.SSLContext(kind) for kind in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
    )
    authority.issue_cert(certified).configure_cert(server_side)
    authority.configure_trust(client_side)
    page = answer(200, b"text of a page", Content_Type="text/html")
    with ScriptedServer([answer(404), page, *[answer(404)] * 9], tls=server_side) as server:
        detour = Detour(server.port)
        monkeypatch.setattr(httpcore, "AnyIOBackend", lambda: detour)
        one = crawler(GuardedNetwork(answers(["93.184.216.34"])), tls=client_side)
        visit = asyncio.run(one.visit("https://firma.ru/"))
    assert visit.home == home
    assert home or "its certificate is not good" in visit.reason


@pytest.mark.parametrize("url", ["http://firma.ru:22/", "https://firma.ru:8443/", "http://firma.ru:6379/"])
def test_only_the_ports_of_the_web(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    network, wire = guarded(monkeypatch, ["93.184.216.34"])

    visit = asyncio.run(crawler(network).visit(url))

    assert wire.asked == []
    assert "names the port" in reasons(visit)


@pytest.mark.parametrize(
    "place",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::1]/",
        "http://metadata.internal/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "//10.0.0.1/",
    ],
)
def test_a_redirect_into_a_network_is_refused(place: str) -> None:
    web = Web({"firma.ru/": moved(place)})

    visit = web.visit("https://firma.ru/")

    assert web.asked == ["firma.ru/robots.txt", "firma.ru/"]
    assert visit.home is None
    assert visit.refusals


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def test_nothing_on_this_machine_is_asked_without_a_stand_in() -> None:
    with listening() as server:
        port = server.getsockname()[1]
        network = GuardedNetwork(answers(["127.0.0.1"]))
        for url in ("http://firma.ru/", f"http://firma.ru:{port}/", f"http://localhost:{port}/"):
            asyncio.run(crawler(network).visit(url))
        with pytest.raises(AddressRefused):
            asyncio.run(network.connect_tcp("127.0.0.1", 80))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_even_a_stand_in_plays_no_private_address() -> None:
    async def ask(there: StandIn) -> None:
        await GuardedNetwork(stand_in=there).connect_tcp("169.254.169.254", 80)

    with pytest.raises(AddressRefused):
        Web({}).run(ask)


def packed(data: bytes, encoding: str = "gzip") -> Reply:
    return Reply(200, data, "text/html", (("Content-Encoding", encoding),))


def test_a_packed_page_is_unpacked() -> None:
    page = gzip.compress(b'<a href="mailto:info@firma.ru">x</a>')

    assert emails(Web({"firma.ru/": packed(page)}).visit("https://firma.ru/")) == {"info@firma.ru"}


def test_a_gzip_bomb_is_unpacked_no_further_than_a_page_may_be_long() -> None:
    bomb = gzip.compress(b"info@firma.ru " + b"A" * 20_000_000, 9)
    assert len(bomb) < QUICK.fetch.most_bytes

    web = Web({"firma.ru/": packed(bomb)})
    web.visit("https://firma.ru/", QUICK)  # loads what reading needs

    tracemalloc.start()
    visit = web.visit("https://firma.ru/", QUICK)
    _, most_at_once = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert emails(visit) == {"info@firma.ru"}
    assert most_at_once < 10_000_000


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_what_was_not_asked_for_is_not_unpacked(encoding: str) -> None:
    assert "which was not asked for" in reasons(
        Web({"firma.ru/": packed(b"x", encoding)}).visit("https://firma.ru/")
    )


def test_broken_packing_is_told() -> None:
    assert "is not HTTP" in reasons(Web({"firma.ru/": packed(b"no gzip at all")}).visit("https://firma.ru/"))


def test_an_endless_page_is_cut() -> None:
    page = b"info@firma.ru " + b"A" * 50_000 + b" "
    web = Web({"firma.ru/": Reply(200, page, "text/html", ending=Ending.ENDLESS)})

    assert emails(web.visit("https://firma.ru/", replace(QUICK, pages=1))) == {"info@firma.ru"}


@pytest.mark.parametrize("drop", [b"x", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_a_page_that_drips_is_given_up(drop: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" if drop == b"x" else b""

    async def visit(port: int) -> SiteReading:
        return await crawler(GuardedNetwork(stand_in=StandIn("127.0.0.1", port)), QUICK).visit(
            "https://firma.ru/"
        )

    with dripping(head, drop) as port:
        assert "it takes more than 0.3 s" in reasons(asyncio.run(visit(port)))


def test_a_whole_visit_has_an_end() -> None:
    web = Web({"firma.ru/robots.txt": html("User-agent: *\nCrawl-delay: 3600"), "firma.ru/": "x"})

    visit = web.visit("https://firma.ru/", replace(HASTE, seconds=0.2))

    assert "the visit takes more than 0.2 s" in reasons(visit)


def test_headers_without_end_are_refused() -> None:
    many = tuple((f"X-{number}", "y" * 1000) for number in range(300))
    web = Web({"firma.ru/": Reply(200, b"x", "text/html", many)})

    assert "endless headers" in reasons(web.visit("https://firma.ru/"))


@pytest.mark.parametrize("reads", ["robots_of", "pages_of_sitemap"])
def test_megabytes_are_not_read_on_the_loop_that_all_visits_share(
    monkeypatch: pytest.MonkeyPatch, reads: str
) -> None:
    threads: list[threading.Thread] = []
    read = getattr(crawler_module, reads)

    def noting(*given: object) -> object:
        threads.append(threading.current_thread())
        return read(*given)

    monkeypatch.setattr(crawler_module, reads, noting)
    web = Web({"firma.ru/": "words", "firma.ru/robots.txt": "", "firma.ru/sitemap.xml": "<loc>/x</loc>"})
    web.visit("https://firma.ru/", replace(HASTE, pages=1))

    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("ending", [Ending.RESET, Ending.CLOSE, Ending.CUT, Ending.GARBAGE])
def test_broken_answers_are_told(ending: Ending) -> None:
    visit = Web({"firma.ru/": Reply(200, b"half of it", "text/html", ending=ending)}).visit(
        "https://firma.ru/"
    )

    assert visit.home is None
    assert visit.refusals


def test_what_is_no_page_is_not_read() -> None:
    web = Web({"firma.ru/": Reply(200, b"%PDF-1.7 info@firma.ru", "application/pdf")})

    assert "it is no page but 'application/pdf'" in reasons(web.visit("https://firma.ru/"))


class Breaking:
    """A reader with a fault that some page brings out."""

    def read(self, data: bytes, url: str, charset: str | None = None) -> PageReading:
        raise RecursionError


def test_a_fault_of_ours_ends_one_visit_only(caplog: pytest.LogCaptureFixture) -> None:
    async def visit(there: StandIn) -> SiteReading:
        return await WebCrawler(site_reader(), Breaking(), GuardedNetwork(stand_in=there), HASTE).visit(
            "https://firma.ru/"
        )

    reading = Web({"firma.ru/": "x"}).run(visit)

    assert reading.home is None
    assert "reading it failed (RecursionError)" in reading.reason
    assert "a visit failed" in caplog.text


def test_facts_are_plain_lines() -> None:
    title = "<title>ООО\r\nBcc: a@b.ru\u202e\u200b</title>"
    page = f'{title}<meta name="description" content="{"я " * 9000}">'

    visit = Web({"firma.ru/": page}).visit("https://firma.ru/")

    facts = {fact.fact: fact.value for fact in visit.pages[0].facts}
    assert facts["title"] == "ООО Bcc: a@b.ru"
    assert len(facts["description"]) <= 500
