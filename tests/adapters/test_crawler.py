"""The crawler reads the few pages that tell how to reach a company, and keeps to what its site asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sendonce.adapters.web.crawler import VisitLimits
from sendonce.adapters.web.guarded_network import GuardedNetwork, StandIn
from sendonce.domain.prospecting.readings import SiteReading
from sendonce.sandbox.http_server import Reply
from tests.adapters.web_stage import HASTE, Web, crawler, emails, html, moved, reasons

HOME = '<title>Насосы</title><a href="/news/1/">Новости</a><a href="/kontakty/">Контакты</a>'
CONTACTS = '<a href="mailto:info@firma.ru">Пишите</a> г. Казань, ул. Мира, 1'


def test_the_home_page_and_the_contact_page_are_read() -> None:
    visit = Web({"firma.ru/": HOME, "firma.ru/kontakty/": CONTACTS}).visit("https://firma.ru/")

    assert visit.home == "https://firma.ru/"
    assert [page.url for page in visit.pages] == ["https://firma.ru/", "https://firma.ru/kontakty/"]
    assert emails(visit) == {"info@firma.ru"}


def test_facts_keep_the_page_that_states_them() -> None:
    visit = Web({"firma.ru/": HOME, "firma.ru/kontakty/": CONTACTS}).visit("https://firma.ru/")

    facts = {(fact.fact, fact.value, fact.source) for page in visit.pages for fact in page.facts}
    assert facts == {
        ("title", "Насосы", "https://firma.ru/"),
        ("city", "Казань", "https://firma.ru/kontakty/"),
    }


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Реквизиты", "/p/7/"),
        ("О компании", "/page2.html"),
        ("Contact us", "/c"),
        ("Impressum", "/recht"),
        ("→", "/kontakty.php"),
        ("→", "/%D0%BA%D0%BE%D0%BD%D1%82%D0%B0%D0%BA%D1%82%D1%8B"),
        ("→", "/%EA%EE%ED%F2%E0%EA%F2%FB/"),
    ],
)
def test_contact_pages_are_known_by_words_or_path(text: str, path: str) -> None:
    home = f'<a href="/catalog/">Каталог</a><a href="{path}">{text}</a>'
    web = Web({"firma.ru/": home, f"firma.ru{path}": CONTACTS})

    assert emails(web.visit("https://firma.ru/")) == {"info@firma.ru"}
    assert "firma.ru/catalog/" not in web.asked


@pytest.mark.parametrize(
    ("charset", "path"),
    [("utf-8", "/%D0%BE%20%D0%BD%D0%B0%D1%81/"), ("cp1251", "/%EE%20%ED%E0%F1/")],
)
def test_a_redirect_may_be_written_in_letters_of_any_charset(charset: str, path: str) -> None:
    written = "/о%20нас/".encode(charset).decode("latin-1")
    web = Web({"firma.ru/": moved(written), f"firma.ru{path}": CONTACTS})

    assert emails(web.visit("https://firma.ru/")) == {"info@firma.ru"}


def test_a_redirect_may_name_a_host_in_letters() -> None:
    written = "https://фирма.рф/".encode().decode("latin-1")
    web = Web({"firma.ru/": moved(written), "xn--80apmps.xn--p1ai/": CONTACTS})

    assert web.visit("https://firma.ru/").home == "https://xn--80apmps.xn--p1ai/"


def test_a_sitemap_helps_where_links_do_not() -> None:
    sitemap = "<urlset><url><loc>https://firma.ru/info/contacts-7.html</loc></url></urlset>"
    web = Web(
        {
            "firma.ru/robots.txt": "User-agent: *\nSitemap: https://firma.ru/map.xml",
            "firma.ru/": "Без ссылок, но со словами",
            "firma.ru/map.xml": sitemap,
            "firma.ru/info/contacts-7.html": CONTACTS,
        }
    )

    assert emails(web.visit("https://firma.ru/")) == {"info@firma.ru"}


def test_usual_paths_are_tried_last() -> None:
    web = Web({"firma.ru/": "Без ссылок", "firma.ru/contacts/": CONTACTS})

    assert emails(web.visit("https://firma.ru/")) == {"info@firma.ru"}


def test_a_visit_reads_no_more_pages_than_it_may() -> None:
    links = "".join(f'<a href="/contact{number}">Контакты</a>' for number in range(50))
    pages = {f"firma.ru/contact{number}": CONTACTS for number in range(50)}

    visit = Web({"firma.ru/": links, **pages}).visit("https://firma.ru/", replace(HASTE, pages=3))

    assert len(visit.pages) == 3


def test_links_to_other_companies_are_not_followed() -> None:
    web = Web({"firma.ru/": '<a href="https://studio.ru/contacts">Контакты</a>', "studio.ru/contacts": "x"})

    web.visit("https://firma.ru/")

    assert not [name for name in web.asked if name.startswith("studio.ru")]


@pytest.mark.parametrize("rules", ["User-agent: *\nDisallow: /", "User-agent: sendonce\nDisallow: /"])
def test_robots_txt_can_forbid_the_site(rules: str) -> None:
    web = Web({"firma.ru/robots.txt": rules, "firma.ru/": HOME})

    visit = web.visit("https://firma.ru/")

    assert web.asked == ["firma.ru/robots.txt"]
    assert visit.home is None
    assert "robots.txt does not allow it" in reasons(visit)


def test_robots_txt_can_forbid_a_page() -> None:
    rules = "User-agent: *\nDisallow: /*kontakty"
    web = Web({"firma.ru/robots.txt": rules, "firma.ru/": HOME, "firma.ru/kontakty/": CONTACTS})

    visit = web.visit("https://firma.ru/")

    assert "firma.ru/kontakty/" not in web.asked
    assert emails(visit) == set()


def test_a_server_in_trouble_is_left_alone() -> None:
    web = Web({"firma.ru/robots.txt": Reply(503, b"", "text/html"), "firma.ru/": HOME})

    assert "is in trouble" in reasons(web.visit("https://firma.ru/"))
    assert web.asked == ["firma.ru/robots.txt"]


def test_a_site_that_asks_to_come_later_is_asked_no_more() -> None:
    home = '<a href="/contact1">Контакты</a><a href="/contact2">Контакты</a>'
    web = Web(
        {"firma.ru/": home, "firma.ru/contact1": Reply(429, b"", "text/html"), "firma.ru/contact2": "x"}
    )

    web.visit("https://firma.ru/")

    assert "firma.ru/contact2" not in web.asked


def test_a_redirect_to_another_company_is_followed_and_told() -> None:
    web = Web({"staroe.ru/": moved("https://www.novoe.ru/"), "www.novoe.ru/": HOME})

    visit = web.visit("https://staroe.ru/")

    assert visit.home == "https://www.novoe.ru/"
    assert "www.novoe.ru/robots.txt" in web.asked


def test_a_page_that_sends_on_by_itself_is_followed() -> None:
    refresh = '<meta http-equiv="Refresh" content="0; url=/ru/index.html">'
    web = Web({"firma.ru/": refresh, "firma.ru/ru/index.html": HOME, "firma.ru/kontakty/": CONTACTS})

    visit = web.visit("https://firma.ru/")

    assert visit.home == "https://firma.ru/ru/index.html"
    assert emails(visit) == {"info@firma.ru"}


@pytest.mark.parametrize(
    "place", ["https://vk.com/firma", "https://market.yandex.ru/shop", "http://localhost/"]
)
def test_a_redirect_away_from_companies_is_refused(place: str) -> None:
    web = Web({"firma.ru/": moved(place)})

    visit = web.visit("https://firma.ru/")

    assert "is no company's site" in reasons(visit)
    assert {name.partition("/")[0] for name in web.asked} == {"firma.ru"}


def test_redirects_in_a_circle_end() -> None:
    web = Web({"firma.ru/": moved("/a"), "firma.ru/a": moved("/")})

    assert "redirects more than 5 times" in reasons(web.visit("https://firma.ru/"))


def test_an_empty_frame_for_scripts_is_told() -> None:
    web = Web({"firma.ru/": '<div id="root"></div><script src="/app.js"></script>'})

    assert "nothing without JavaScript" in reasons(web.visit("https://firma.ru/"))


def test_who_visits_is_told_with_a_page_to_read() -> None:
    web = Web({"firma.ru/": HOME})

    web.visit("https://firma.ru/", agent_page="https://example.org/about-our-visits")

    agents = {headers["user-agent"] for headers in web.headers}
    assert agents == {"sendonce/1.0 (+https://example.org/about-our-visits)"}


def test_one_connection_serves_a_whole_visit() -> None:
    web = Web({"firma.ru/": HOME, "firma.ru/kontakty/": CONTACTS})

    web.visit("https://firma.ru/")

    assert web.open_at_once == 1


def test_two_visits_to_one_host_take_turns() -> None:
    import asyncio

    web = Web({"a.ru/": moved("https://c.ru/"), "b.ru/": moved("https://c.ru/"), "c.ru/": HOME})

    async def both(there: StandIn) -> list[SiteReading]:
        one = crawler(GuardedNetwork(stand_in=there))
        return await asyncio.gather(one.visit("https://a.ru/"), one.visit("https://b.ru/"))

    visits = web.run(both)

    assert [visit.home for visit in visits] == ["https://c.ru/"] * 2
    of_c = [name for name in web.asked if name.startswith("c.ru")]
    assert of_c == of_c[: len(of_c) // 2] * 2  # one whole visit after the other


def test_crawl_delay_of_robots_txt_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    import asyncio

    real = asyncio.sleep

    async def note(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    rules = html("User-agent: *\nCrawl-delay: 7")
    web = Web({"firma.ru/robots.txt": rules, "firma.ru/": HOME, "firma.ru/kontakty/": CONTACTS})
    monkeypatch.setattr("sendonce.adapters.web.politeness.asyncio.sleep", note)

    visit = web.visit("https://firma.ru/", VisitLimits(pause=1.0, seconds=5.0))

    assert len(visit.pages) == 2
    assert [round(seconds) for seconds in slept] == [0, 7, 7]


@pytest.mark.parametrize("charset", ["windows-1251", "koi8-r"])
@pytest.mark.parametrize("where", ["header", "meta", "nowhere"])
def test_old_russian_charsets(charset: str, where: str) -> None:
    meta = f'<meta charset="{charset}">' if where == "meta" else ""
    page = f"<html><head>{meta}<title>Насосный завод в городе Казань: производство насосов</title>"
    kind = f"text/html; charset={charset}" if where == "header" else "text/html"

    visit = Web({"firma.ru/": Reply(200, page.encode(charset), kind)}).visit("https://firma.ru/")

    assert [fact.value for fact in visit.pages[0].facts] == [
        "Насосный завод в городе Казань: производство насосов"
    ]
