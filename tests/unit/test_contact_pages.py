"""Which links of a page are worth a visit, and how sightings of a contact become one."""

from __future__ import annotations

import time
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.web.robots import pages_of_sitemap, robots_of
from sendonce.adapters.web.urls import find_place
from sendonce.domain.prospecting.contact_pages import contact_links
from sendonce.domain.prospecting.kept_contacts import ContactKind, SeenContact, TakesMail, merge_all
from sendonce.domain.prospecting.readings import Link

HOST = "https://firma.ru"


def links(**texts: str) -> list[Link]:
    return [Link(f"{HOST}/{path}", text) for path, text in texts.items()]


def test_the_most_promising_come_first() -> None:
    found = contact_links(links(team="Команда", about="О компании", x="Реквизиты", y="Контакты"), 3)
    assert found == [f"{HOST}/y", f"{HOST}/x", f"{HOST}/about"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("catalog/lenses", "Контактные линзы"),
        ("svarka", "Контактная сварка"),
        ("price.pdf", "Контакты"),
        ("blog/7", "Как мы " + "очень " * 20 + "рады контактам"),
        ("catalog", "Каталог"),
    ],
)
def test_what_only_sounds_like_it_is_left_out(path: str, text: str) -> None:
    assert contact_links([Link(f"{HOST}/{path}", text)], 5) == []


@given(st.lists(st.tuples(st.text(), st.text())))
def test_any_links_can_be_weighed(given_links: list[tuple[str, str]]) -> None:
    found = contact_links([Link(f"{HOST}/{path}", text) for path, text in given_links], 3)
    assert len(found) <= 3


@given(st.text(), st.sampled_from(["", "https://firma.ru/a/b?c#d", "http://firma.ru"]))
def test_any_link_leads_to_a_place_of_the_web_or_nowhere(link: str, base: str) -> None:
    place = find_place(link, base)
    if place is not None:
        assert place.scheme in ("http", "https")
        assert place.target.startswith("/")
        assert not any(char.isspace() for char in place.url)
        assert find_place(place.url) == place


@given(st.binary())
def test_any_bytes_can_be_a_sitemap_or_robots_txt(data: bytes) -> None:
    pages_of_sitemap(data)
    robots = robots_of(200, data, "sendonce")
    assert robots is not None
    robots.allow("https://firma.ru/")
    assert robots.pause >= 0


@pytest.mark.parametrize("opened", [b"<loc>", b"<loc><![CDATA["])
def test_a_sitemap_of_blanks_costs_no_more_than_its_length(opened: bytes) -> None:
    """Two runs of blanks side by side took minutes."""
    began = time.process_time()
    found = pages_of_sitemap(b"<loc>\n <![CDATA[ https://firma.ru/ ]]></loc>" + opened + b" " * 200_000)
    assert time.process_time() - began < 5
    assert found == ["https://firma.ru/"]


@pytest.mark.parametrize(
    ("asked", "pause"), [("2.5", 2.5), ("-1", 0.0), ("nan", 0.0), ("9e9", 86_400.0), ("x", 0.0)]
)
def test_a_pause_is_a_number_of_seconds(asked: str, pause: float) -> None:
    robots = robots_of(200, f"User-agent: *\nCrawl-delay: {asked}".encode(), "sendonce")
    assert robots is not None
    assert robots.pause == pause


@pytest.mark.parametrize(("status", "visited"), [(404, True), (403, True), (429, False), (503, False)])
def test_without_robots_txt_all_is_allowed_and_trouble_forbids(status: int, visited: bool) -> None:
    assert (robots_of(status, b"", "sendonce") is not None) == visited


SEEN = [
    SeenContact(ContactKind.EMAIL, "Info@firma.ru", 0.8, "text", "a", takes_mail=TakesMail.UNKNOWN),
    SeenContact(ContactKind.EMAIL, "info@firma.ru", 1.0, "mailto", "b", attributes={"x": "1"}),
    SeenContact(ContactKind.EMAIL, "INFO@firma.ru", 0.7, "script", "c", takes_mail=TakesMail.YES),
]


@pytest.mark.parametrize("order", list(permutations(SEEN)))
def test_the_order_of_sightings_does_not_matter(order: tuple[SeenContact, ...]) -> None:
    [one] = merge_all(order)
    assert (one.quality, one.source, one.source_url) == (1.0, "mailto", "b")
    assert (one.takes_mail, one.attributes) == (TakesMail.YES, {"x": "1"})
    assert merge_all([one, one]) == [one]
