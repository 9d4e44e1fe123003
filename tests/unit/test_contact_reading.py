"""Contacts on a page: every way to write an address, none of the traps, phones and tax numbers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.contacts.page_reader import PageReader
from sendonce.domain.prospecting.contacts import Contacts
from sendonce.domain.prospecting.readings import FactKind
from sendonce.domain.prospecting.tax_numbers import is_inn, is_ogrn
from sendonce.wiring.prospecting import contact_reader
from tests.unit.written_ways import ADDRESS, OTHER_WAYS, TRAPS, WAYS

URL = "https://www.firma.ru/kontakty"


def read(html: str | bytes, url: str = URL) -> Contacts:
    data = html if isinstance(html, bytes) else f"<html><head></head><body>{html}</body></html>".encode()
    return contact_reader().read(data, url)


def addresses(html: str | bytes, url: str = URL) -> list[str]:
    return [email.value for email in read(html, url).emails]


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_write_an_address(way: str) -> None:
    assert addresses(WAYS[way]) == [ADDRESS]


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_write_an_address_of_another_domain(way: str) -> None:
    """What is found does not depend on whose page it is."""
    assert addresses(WAYS[way], "https://drugaya.com/") == [ADDRESS]


@pytest.mark.parametrize("html", OTHER_WAYS)
def test_other_addresses(html: str) -> None:
    assert addresses(html) == [OTHER_WAYS[html]]


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap: str) -> None:
    assert addresses(TRAPS[trap]) == []


BESIDE_THE_OWN = {
    "<p>Доставка: СДЭК, callcenter@cdek.ru</p>": False,
    '<a href="mailto:sale@lutik.ru">Лютик</a>': False,
    "<p>zavod@mail.ru</p>": True,
    "<p>info@firma-kazan.com</p>": True,
    '<script type="application/ld+json">{"@type":"Organization","email":"info@holding.ru"}</script>': True,
}


@pytest.mark.parametrize("html", BESIDE_THE_OWN)
def test_beside_an_own_address_those_of_other_companies_are_not_taken(html: str) -> None:
    """Free mail, domains that are named alike and what the page states for machines may be the company's."""
    (alone,) = addresses(html)
    found = addresses(f"<p>info@firma.ru</p>{html}")
    assert (alone in found) is BESIDE_THE_OWN[html]
    assert "info@firma.ru" in found


PHONES = {
    '<a href="tel:+78432334455">Позвонить</a>': ("+78432334455", None, "tel", 0.9),
    '<a href="tel:+7%20(843)%20233-44-55">x</a>': ("+78432334455", None, "tel", 0.9),
    '<a href="tel:88432334455;ext=12">x</a>': ("+78432334455", "12", "tel", 0.9),
    "<p>Тел.: 8 (843) 233-44-55 доб. 123</p>": ("+78432334455", "123", "text", 0.6),
    "<p>+7 843 233 44 55</p>": ("+78432334455", None, "text", 0.6),
    "<p>8-800-555-35-35</p>": ("+78005553535", None, "text", 0.6),
    "<p>8 (843) <b>233-44-55</b></p>": ("+78432334455", None, "text", 0.6),
    "<p>Телефон (843) 233-44-55</p>": ("+78432334455", None, "text", 0.6),
    "<p>+49 30 901820</p>": ("+4930901820", None, "text", 0.6),
    '<a href="https://wa.me/78432334455">WhatsApp</a>': ("+78432334455", None, "messenger", 0.7),
    '<span itemprop="telephone">+7 (843) 233-44-55</span>': ("+78432334455", None, "microdata", 0.85),
}


@pytest.mark.parametrize("html", PHONES)
def test_phones_become_e164(html: str) -> None:
    (phone,) = read(html).phones
    assert (phone.value, phone.extension, phone.source.value, phone.quality) == PHONES[html]


@pytest.mark.parametrize(
    "html",
    [
        "Гостиница «Волга», тел. 8 (843) 233-44-55",
        "Инна, менеджер: +7 (843) 233-44-55",
        "Казань, ул. Ленина, офис №5, тел. 8 (843) 233-44-55",
        "ИНН 7707083893 тел. 8 (843) 233-44-55",
        "<p>ИНН 7707083893</p><p>тел. 8 (843) 233-44-55</p>",
        "ИНН 7707083893<br>Телефон: +7 (843) 233-44-55",
        "<table><tr><td>ИНН<td>7707083893<tr><td>Телефон<td>+7 (843) 233-44-55</table>",
    ],
)
def test_a_phone_near_another_number_is_a_phone(html: str) -> None:
    assert [phone.value for phone in read(f"<body>{html}</body>").phones] == ["+78432334455"]


def test_two_phones_in_neighbouring_cells_are_two() -> None:
    found = read("<table><tr><td>8 (843) 233-44-55</td><td>8 (843) 233-44-56</td></tr></table>").phones
    assert [phone.value for phone in found] == ["+78432334455", "+78432334456"]


@pytest.mark.parametrize(
    "text",
    [
        *("ИНН 7707083893", "ОГРН 1027700132195", "р/с 40702810900000012345", "БИК 044525225", "8 000 руб."),
        *("12.05.2024 10:00", "© 2010–2026", "Арт. 8432334455", "0123456789", "ГОСТ 8239-89 8432334455"),
        *("+7 (000) 000-00-00", "2023-2024-2025-2026"),
    ],
)
def test_numbers_that_are_no_phones(text: str) -> None:
    assert read(f"<p>{text}</p>").phones == []


def test_an_extension_that_one_place_knows_goes_to_the_number() -> None:
    (phone,) = read('<a href="tel:+78432334455">x</a><p>8 (843) 233-44-55 доб. 7</p>').phones
    assert (phone.source.value, phone.extension) == ("tel", "7")


TAX = {
    "ИНН 7707083893, ОГРН 1027700132195": (["7707083893"], ["1027700132195"]),
    "ИНН/КПП: 7707083893/773601001": (["7707083893"], []),
    "ИНН 77 07 083893": (["7707083893"], []),
    "ОГРНИП 304500116000157, ИНН 500100732259": (["500100732259"], ["304500116000157"]),
    "ИНН 7707083894": ([], []),
    "7707083893": ([], []),
    "Длинный 7707083893": ([], []),
    "Тел. 7707083893": ([], []),
}


@pytest.mark.parametrize("text", TAX)
def test_tax_numbers_need_a_label_and_right_digits(text: str) -> None:
    found = read(f"<p>{text}</p>")
    assert (found.inn, found.ogrn) == TAX[text]


@given(st.integers(0, 10**12 - 1))
def test_any_other_last_digit_is_wrong(number: int) -> None:
    ogrn = f"{number:012}"
    assert sum(is_ogrn(ogrn + str(digit)) for digit in range(10)) == 1
    inn = f"{number:012}"[:9]
    assert sum(is_inn(inn + str(digit)) for digit in range(10)) == 1


def test_the_best_place_comes_first_and_each_address_once() -> None:
    html = (
        "<p>sales@firma.ru info@firma.ru ivan.petrov@firma.ru zavod@mail.ru</p>"
        '<a href="mailto:Info@Firma.ru">Почта</a>'
    )
    emails = read(html).emails
    assert [(email.value, email.quality, email.source.value, email.primary) for email in emails] == [
        ("info@firma.ru", 1.0, "mailto", True),
        ("sales@firma.ru", 0.8, "text", False),
        ("ivan.petrov@firma.ru", 0.8, "text", False),
        ("zavod@mail.ru", 0.8, "text", False),
    ]
    assert [email.role for email in emails] == ["role", "role", "personal", "role"]
    assert [email.freemail for email in emails] == [False, False, False, True]


def test_only_one_address_of_page_and_frames_is_primary() -> None:
    html = '<a href="mailto:info@firma.ru">x</a><iframe srcdoc="<p>sales@firma.ru</p>"></iframe>'
    emails = read(html).emails
    assert [(email.value, email.primary) for email in emails] == [
        ("info@firma.ru", True),
        ("sales@firma.ru", False),
    ]


def test_a_studio_reads_its_own_mail() -> None:
    """The words that tell a web studio's address say nothing about the owner of the page."""
    html = '<p>Разработка сайтов: hello@studio.ru</p><a href="mailto:hello@studio.ru">Создание сайтов</a>'
    assert addresses(html, "https://studio.ru/") == ["hello@studio.ru"]


_RUSSIAN = "<p>Насосный завод в Казани. Пишите на info@firma.ru или (собака) звоните</p>"


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "cp1251", "koi8-r", "utf-16"])
@pytest.mark.parametrize("meta", ["right", "none", "wrong"])
def test_the_charset_is_found_out(charset: str, meta: str) -> None:
    """By mark, by what the page says, and by its letters where it says nothing or something wrong."""
    said = {"right": f'<meta charset="{charset}">', "none": "", "wrong": '<meta charset="utf-8">'}[meta]
    html = f"<html><head>{said}</head><body>{_RUSSIAN * 3}<p>sales (собака) firma.ru</p></body></html>"
    assert addresses(html.encode(charset)) == ["info@firma.ru", "sales@firma.ru"]


HOSTILE = {
    "nesting": "<div>" * 200_000 + "info@firma.ru",
    "nesting, closed": "<div>" * 150_000 + "info@firma.ru" + "</div>" * 150_000,
    "nesting with ends of something else": "<div></x>" * 200_000 + "info@firma.ru",
    "tables": "<table><tr><td>" * 100_000 + "info@firma.ru",
    "at signs": "info@firma.ru " + "@" * 2_000_000,
    "at signs in words": "info@firma.ru " + "a@" * 1_000_000,
    "dots": "info@firma.ru " + "a." * 1_000_000 + "@" + "a." * 100_000,
    "attributes": "info@firma.ru <div " + " ".join(f"a{i}=1" for i in range(200_000)) + ">x</div>",
    "attributes with @": "info@firma.ru " + '<p title="x@y">' * 100_000,
    "brackets": "info@firma.ru " + "(at" * 600_000,
    "angle brackets": "info@firma.ru " + "<" * 2_000_000,
    "unclosed tags": "info@firma.ru " + "<a " * 600_000,
    "unclosed scripts": "info@firma.ru " + "<script>" * 200_000,
    "comments": "info@firma.ru " + "<!--" * 500_000,
    "formatting": "info@firma.ru <div>"
    + "".join(f"<font size={i}>" for i in range(5000))
    + "</div>"
    + "<p>x</p>" * 50_000,
    "formatting with ends of something else": "info@firma.ru <div>"
    + "".join(f"<font size={i}></b>" for i in range(5000))
    + "</div>"
    + "<p>x</p>" * 50_000,
    "digits": "info@firma.ru " + "8 " * 1_000_000,
    "phones": "info@firma.ru " + "8 (843) 233-44-55 " * 100_000,
    "labels": "info@firma.ru " + "ИНН " * 400_000,
    "entities": "info@firma.ru " + "&#64;" * 400_000,
    "script strings": "info@firma.ru <script>" + "'a'+" * 400_000 + "'@'</script>",
    "script brackets": "info@firma.ru <script>x='@'+" + "(" * 400_000 + "</script>",
    "script lists": "info@firma.ru <script>x='@';y=" + "[" * 400_000 + "</script>",
    "script quotes": "info@firma.ru <script>'@'" + "\"'`" * 400_000 + "</script>",
    "script doubling": "info@firma.ru <script>a='@@@@';" + "a=a.concat(a,a);" * 6000 + "</script>",
    "script templates": "info@firma.ru <script>a='@@@@';" + "a=`${a}${a}`;" * 7000 + "</script>",
    "script joining": "info@firma.ru <script>a='@@@@';" + "a=a.split('').join(a);" * 4500 + "</script>",
    "script replacing": "info@firma.ru <script>a='@@@@';"
    + "a=a.replace('@','@@@@@@@@@');" * 3500
    + "</script>",
    "script growing": "info@firma.ru " + ("<script>a='@@@@';" + "a+='@@@@@@@@';" * 7000 + "</script>") * 4,
    "scripts": "info@firma.ru " + ("<script>a='@@@@';" + "a=a+a+a+a;" * 5 + "a;" * 30 + "</script>") * 15_000,
    "json": 'info@firma.ru <script type="application/ld+json">' + '{"a":[' * 200_000 + "</script>",
    "styles": "info@firma.ru <style>" + ".a{display:none}" * 20_000 + "</style>" + "<b class=a>x</b>" * 5000,
    "hidden": "info@firma.ru " + '<i style="display:none">x</i>' * 60_000,
    "rules for nothing": "info@firma.ru <style>"
    + "".join(f".a{i}{{display:none}}" for i in range(9000))
    + "</style>"
    + "<p>" * 500_000,
    "nested rules": "info@firma.ru <style>"
    + ".x div div p{unicode-bidi:bidi-override}.x p{unicode-bidi:bidi-override}" * 50
    + "</style>"
    + "<div>" * 400
    + "<p>" * 200_000,
    "hidden in hidden": "info@firma.ru " + "<div hidden>" * 400 + "<p><a href=x>a</a>" * 90_000,
    "turned in turned": "info@firma.ru " + '<div style="unicode-bidi:bidi-override">' * 500 + "b " * 900_000,
    "hidden classes": "info@firma.ru <style>"
    + "".join(f".d{i}{{display:none}}" for i in range(9000))
    + "</style><div class='"
    + " ".join(f"d{i}" for i in range(200))
    + "'>"
    + "b " * 900_000,
    "frames": "info@firma.ru " + "<iframe srcdoc='<p>x@y'></iframe>" * 50_000,
    "frames in frames": "info@firma.ru " + "<iframe srcdoc='<iframe srcdoc=&quot;x@y&quot;>" * 40_000,
    "calls": "info@firma.ru <script>'@';" + "(function(a){})('b')" * 4900 + "</script>",
    "codes": "info@firma.ru <script>'@';" + "fromCharCode((((" * 6000 + "</script>",
    "letters": "info@firma.ru " + "a " * 400_000 + "@" + " a" * 400_000,
    "zeros": "info@firma.ru " + "\x00" * 1_000_000,
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_pages_take_seconds_at_the_most(shape: str) -> None:
    """Every one of them takes minutes or for ever where a step is quadratic."""
    began = time.process_time()
    found = addresses(HOSTILE[shape])
    assert time.process_time() - began < 5
    assert "info@firma.ru" in found


def test_a_script_that_puts_too_much_together_still_tells_what_it_writes() -> None:
    script = "a='@@@@';" + "a=a.concat(a,a);" * 500 + "email='info@firma.ru'"
    assert addresses(f"<script>{script}</script>") == ["info@firma.ru"]


def test_of_hidden_blocks_the_links_stay_but_for_hidden_ones() -> None:
    """Wherever the block's own hidden parts are."""
    menu = (
        '<div class="menu" hidden><p>text@firma.ru</p><div style="display:none"><ul>'
        '<li><a href="mailto:menu@firma.ru">x</a><a hidden href="mailto:trap@firma.ru">x</a></ul></div>'
        '<span hidden><div hidden><a href="mailto:trap2@firma.ru">x</a></div></span></div>'
    )
    assert addresses(menu + "<p>info@firma.ru</p>") == ["menu@firma.ru", "info@firma.ru"]


@settings(max_examples=200)
@given(
    st.binary(max_size=300) | st.text(alphabet="<>/=\"'@.()[]&#;абвat \x1e+-{}", max_size=200).map(str.encode)
)
def test_reading_never_fails(data: bytes) -> None:
    found = contact_reader().read(data, "no url")
    assert all("@" in email.value for email in found.emails)


@given(
    st.from_regex(r"[a-z][a-z0-9]{0,10}(\.[a-z0-9]{1,8})?", fullmatch=True),
    st.from_regex(r"[a-z][a-z0-9]{2,12}\.(ru|com|kz|org)", fullmatch=True),
    st.sampled_from(["{0}@{1}", "{0} (at) {1}", "{0}[собака]{1}", "{0}<!-- -->@<b>{1}</b>", "{0}&#64;{1}"]),
)
def test_any_address_is_found_in_any_way(local: str, domain: str, way: str) -> None:
    page = f"<p>Пишите: {way.format(local, domain)} — ответим</p>"
    plain = contact_reader().read(f"<a href='mailto:{local}@{domain}'>x</a>".encode(), "https://x.ru/")
    assert addresses(page) == [email.value for email in plain.emails]


@pytest.mark.parametrize(
    ("html", "name"),
    [
        ("<title>Насосы в Казани — ООО «Насосмаш»</title>", "ООО «Насосмаш»"),
        ('<title>Насосы</title><p>АО "Завод № 5", г. Пермь</p>', "АО «Завод № 5»"),
        ("<title>Насосы</title><p>© 2026 ТД «Кабель»</p>", "ТД «Кабель»"),
        ("<title>Насосы</title><p>Мы любим «Зенит»</p>", None),
    ],
)
def test_a_company_is_called_by_its_legal_name(html: str, name: str | None) -> None:
    facts = {fact.fact: fact.value for fact in PageReader(contact_reader()).read(html.encode(), URL).facts}
    assert facts.get(FactKind.NAME) == name
