"""Addresses on the web: one spelling for each page, one key for each company, and who is none."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.web.public_suffixes import BUILDERS_FILE, public_suffixes, read_names
from sendonce.adapters.web.site_reader import KNOWN_FILE, site_reader
from sendonce.domain.prospecting.sites import SiteKind, shown_domain

TEST_PSL = Path(__file__).parents[3] / "shared" / "corpora" / "test_psl.txt"
_VECTOR = re.compile(r"^checkPublicSuffix\((null|'[^']*'), (null|'[^']*')\);", re.MULTILINE)

read = site_reader().read


@pytest.mark.skipif(not TEST_PSL.exists(), reason=f"{TEST_PSL} is not here")
def test_the_vectors_of_the_public_suffix_list() -> None:
    vectors = [tuple(value.strip("'") for value in found) for found in _VECTOR.findall(TEST_PSL.read_text())]
    assert len(vectors) > 70
    for host, expected in vectors:
        if host != "null":
            wanted = None if expected == "null" else expected.encode("idna").decode()
            assert read(host).domain == wanted, host


CANONICAL = {
    "firma.ru": "https://firma.ru/",
    "FIRMA.RU/Kontakty": "https://firma.ru/Kontakty",
    "//firma.ru/x": "https://firma.ru/x",
    "http://firma.ru": "https://firma.ru/",
    "http://firma.ru:80/": "https://firma.ru/",
    "https://firma.ru:443/": "https://firma.ru/",
    "http://firma.ru:8080/": "http://firma.ru:8080/",
    "firma.ru:8080/x": "https://firma.ru:8080/x",
    "https://firma.ru./a/../b": "https://firma.ru/b",
    "https://завод.рф/контакты": f"https://xn--80aegj1b.xn--p1ai/{quote('контакты')}",
    "http://ｆｉｒｍａ。ru/": "https://firma.ru/",
    "https://firma.ru/%ea%ee%ed": "https://firma.ru/%ea%ee%ed",
    "https://user:secret@firma.ru/": "https://firma.ru/",
    "https://firma.ru/#contacts": "https://firma.ru/",
    "https://firma.ru/?utm_source=ya&id=7&yclid=1": "https://firma.ru/?id=7",
    "https://firma.ru/?UTM_Medium=x&calltouch_tm=1&_openstat=a;b&etext=1": "https://firma.ru/",
    "https://firma.ru/?roistat=2&ysclid=3&from=x": "https://firma.ru/",
    "https://firma.ru/?q=%D0%B0+%2B&b": "https://firma.ru/?q=%D0%B0+%2B&b",
    r"https://firma.ru\@evil.com/": "https://firma.ru/@evil.com/",
    "  https://firma.ru/\n": "https://firma.ru/",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_each_page_has_one_spelling(text: str) -> None:
    assert read(text).url == CANONICAL[text]


@pytest.mark.parametrize(
    "text",
    [
        *("", "   ", "нет сайта", "mailto:info@firma.ru", "tel:+78432334455", "javascript:alert(1)"),
        "https://-firma-.ru/",
        *("ftp://firma.ru/", "file:///etc/passwd", "data:text/html,x", "https://", "http://a b.ru/"),
        *("https://a..b.ru/", "https://.firma.ru/", f"https://{'a' * 64}.ru/"),
        "https://" + "a." * 130 + "ru/",
        *("https://firma.ru/" + "a" * 9000, "https://xn--zzzzzz99999.ru/", "\ud800"),
    ],
)
def test_what_is_no_address_of_the_web(text: str) -> None:
    site = read(text)
    assert (site.url, site.domain, site.kind) == (None, None, SiteKind.INVALID)


DOMAINS = {
    "https://www.firma.ru/": "firma.ru",
    "https://m.shop.firma.ru/": "firma.ru",
    "https://firma.com.ru/": "firma.com.ru",
    "https://www.firma.msk.ru/": "firma.msk.ru",
    "https://firma.spb.ru/": "firma.spb.ru",
    "https://firma.tilda.ws/": "firma.tilda.ws",
    "https://www.firma.ucoz.ru/": "firma.ucoz.ru",
    "https://firma.narod.ru/": "firma.narod.ru",
    "https://firma.nethouse.ru/": "firma.nethouse.ru",
    "https://firma.wixsite.com/main": "firma.wixsite.com",
    "https://firma.github.io/": "firma.github.io",
    "https://www.завод.рф/": "xn--80aegj1b.xn--p1ai",
    "https://firma.co.uk/": "firma.co.uk",
}


@pytest.mark.parametrize("text", DOMAINS)
def test_a_company_is_its_registrable_domain(text: str) -> None:
    site = read(text)
    assert (site.domain, site.kind) == (DOMAINS[text], SiteKind.COMPANY)


KINDS = {
    "https://www.avito.ru/kazan": SiteKind.MARKETPLACE,
    "https://firma.tiu.ru/": SiteKind.MARKETPLACE,
    "https://firma.pulscen.ru/": SiteKind.MARKETPLACE,
    "https://market.yandex.ru/product": SiteKind.MARKETPLACE,
    "https://2gis.ru/kazan": SiteKind.DIRECTORY,
    "https://kazan.hh.ru/": SiteKind.DIRECTORY,
    "https://companies.rbc.ru/id/1": SiteKind.DIRECTORY,
    "https://www.rusprofile.ru/id/1": SiteKind.DIRECTORY,
    "https://www.rbc.ru/": SiteKind.NEWS,
    "https://vk.com/firma": SiteKind.SOCIAL,
    "https://t.me/firma": SiteKind.SOCIAL,
    "https://firma.livejournal.com/": SiteKind.SOCIAL,
    "https://zakupki.gov.ru/": SiteKind.GOVERNMENT,
    "https://gov.ru/": SiteKind.GOVERNMENT,
    "https://www.gov.uk/": SiteKind.GOVERNMENT,
    "https://minfin.gov.kz/": SiteKind.GOVERNMENT,
    "https://kzn.tatarstan.ru/": SiteKind.GOVERNMENT,
    "https://мвд.рф/": SiteKind.GOVERNMENT,
    "https://tilda.ws/": SiteKind.SITE_BUILDER,
    "https://tilda.cc/": SiteKind.SITE_BUILDER,
    "https://sites.google.com/view/firma": SiteKind.SITE_BUILDER,
    "https://www.ucoz.ru/": SiteKind.SITE_BUILDER,
    "https://wixsite.com/": SiteKind.SITE_BUILDER,
    "https://www.com.ru/": SiteKind.INVALID,
    "https://is.gd/abc": SiteKind.BLOCKED,
    "https://www.gov.spb.ru/": SiteKind.GOVERNMENT,
    "https://ru.wikipedia.org/wiki/x": SiteKind.BLOCKED,
    "https://yandex.ru/search": SiteKind.BLOCKED,
    "http://192.168.0.1/": SiteKind.BLOCKED,
    "http://2130706433/": SiteKind.BLOCKED,
    "http://[::1]/": SiteKind.BLOCKED,
    "http://localhost/": SiteKind.BLOCKED,
    "https://firma.local/": SiteKind.BLOCKED,
    "https://firma.nosuchtld/": SiteKind.INVALID,
    "https://com.ru/": SiteKind.INVALID,
    "https://myvk.com/": SiteKind.COMPANY,
    "https://vk.com.firma.ru/": SiteKind.COMPANY,
    "https://avito.ru.com/": SiteKind.COMPANY,
}


@pytest.mark.parametrize("text", KINDS)
def test_kinds_match_whole_labels(text: str) -> None:
    assert read(text).kind == KINDS[text]


@pytest.mark.parametrize("text", ["http://192.168.0.1/", "http://0x7f.1/", "http://[2001:db8::1]/"])
def test_an_ip_address_has_no_registrable_domain(text: str) -> None:
    assert read(text).domain is None


@given(st.text(max_size=80) | st.from_regex(r"https?://[a-zа-я.:@/\\?#&=%0-9-]{1,60}", fullmatch=True))
def test_reading_never_fails_and_its_answer_is_its_own_spelling(text: str) -> None:
    site = read(text)
    if site.url is None:
        assert site.kind == SiteKind.INVALID
    else:
        again = read(site.url)
        assert (again.url, again.domain, again.kind) == (site.url, site.domain, site.kind)


def test_the_lists_are_in_order() -> None:
    """Each name once, in the spelling that hosts are compared in, under a kind that exists."""
    known = [line for line in read_names(KNOWN_FILE) if not line.startswith("[")]
    builders = read_names(BUILDERS_FILE)
    for names in (known, builders):
        assert len(names) == len(set(names))
        for name in names:
            assert read(f"https://{name}/").url is not None
            assert name == name.lower()
            assert not name.startswith("www.")
    for name in known:
        assert public_suffixes().is_listed(name.encode("idna").decode()), name


def test_people_read_names_in_their_letters() -> None:
    assert shown_domain("xn--80aegj1b.xn--p1ai") == "завод.рф"
    assert shown_domain("firma.ru") == "firma.ru"
