"""Search results in XML: what is in them is found, and nothing that is in them does harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.search.serp_xml import MAX_SIZE, read_serp
from sendonce.domain.prospecting.search_answers import Verdict
from sendonce.sandbox.yandex.serp import answer_xml, error_xml
from sendonce.sandbox.yandex.sites import FindableSite


def serp(documents: str) -> bytes:
    return (
        '<?xml version="1.0" encoding="utf-8"?><yandexsearch><request><query>насосы</query></request>'
        f"<response><results><grouping>{documents}</grouping></results></response></yandexsearch>"
    ).encode()


WHOLE = """<group><categ attr="d" name="firma.ru"/><doc id="Z1"><relevance priority="all"/>
<saved-copy-url>https://yandexwebcache.net/?a=1&amp;b=2</saved-copy-url><url>https://firma.ru/a?b=1&amp;c=2</url>
<domain>firma.ru</domain><title>Завод <hlword>насосов</hlword>
  &amp; Ко</title><headline>Не этот</headline><mime-type>text/html</mime-type>
<passages><passage>Мы делаем <hlword>насосы</hlword>.</passage>
<passage>С\u00a01998\u200b года</passage></passages>
<properties><_PassagesType>0</_PassagesType><lang>RU</lang></properties></doc></group>"""


def test_a_whole_result_is_read() -> None:
    page = read_serp(serp(WHOLE))
    assert page.verdict is Verdict.RESULTS
    (document,) = page.documents
    assert document.url == "https://firma.ru/a?b=1&c=2"
    assert document.title == "Завод насосов & Ко"
    assert document.snippet == "Мы делаем насосы. … С 1998 года"
    assert (document.position, document.language) == (1, "ru")


def test_only_an_address_is_needed() -> None:
    """Headlines stand in for passages; a result without an address is none, and takes no position."""
    page = read_serp(
        serp(
            "<group><doc><title>Без адреса</title></doc></group><group><doc><url>https://a.ru/</url></doc></group>"
            "<group><doc><url>https://b.ru/</url><headline>О нас</headline></doc></group>"
        )
    )
    assert [(it.url, it.position, it.title, it.snippet, it.language) for it in page.documents] == [
        ("https://a.ru/", 1, "", "", None),
        ("https://b.ru/", 2, "", "О нас", None),
    ]


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (15, Verdict.NOTHING),
        (20, Verdict.AGAIN),
        (32, Verdict.AGAIN),
        (55, Verdict.AGAIN),
        (100, Verdict.AGAIN),
    ]
    + [(code, Verdict.NEVER) for code in (1, 2, 18, 19, 31, 33, 37, 42, 44, 48, 10002)],
)
def test_error_codes_are_classified(code: int, verdict: Verdict) -> None:
    page = read_serp(error_xml("насосы", 0, code, "Так бывает").encode())
    assert (page.verdict, page.code, page.reason) == (verdict, str(code), "Так бывает")


def test_no_results_and_no_error_is_nothing_found() -> None:
    assert read_serp(serp("")).verdict is Verdict.NOTHING


def test_an_answer_that_ends_in_the_middle_gives_what_came_before() -> None:
    sites = [FindableSite(f"https://firma{number}.ru/", "Насосы") for number in range(10)]
    whole = answer_xml("насосы", sites, 0).encode()
    page = read_serp(whole[: whole.index(b"firma7")])
    assert page.cut
    assert [document.url for document in page.documents] == [site.url for site in sites[:7]]


HOSTILE = {
    "entities": b'<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]><a>&d;</a>',
    "an outside entity": b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    "a DOCTYPE in UTF-16": '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a><a/>'.encode("utf-16"),
    "another encoding": b'<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE a+AD4-',
    "a tower of tags": b"<a>" * 200_000,
    "a closed tower": b"<a>" * 200_000 + b"</a>" * 200_000,
    "too much of it": b"<a>" + b" " * MAX_SIZE + b"</a>",
    "ten thousand results": serp("<doc><url>https://a.ru/</url></doc>" * 10_000),
    "nothing": b"",
    "HTML": b"<!DOCTYPE html><html><body>502</body></html>",
    "bytes": bytes(range(256)),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_what_is_built_to_do_harm_is_refused(how: str) -> None:
    page = read_serp(HOSTILE[how])
    assert (page.verdict, page.documents, page.code) == (Verdict.AGAIN, (), "unreadable")


def test_a_tower_is_left_at_its_first_floors() -> None:
    """What comes after them is not even looked at: it is not XML."""
    assert "40 levels" in read_serp(b"<a>" * 41 + b"<<<").reason
    assert "40 levels" not in read_serp(b"<a>" * 40 + b"<<<").reason


def test_a_field_cannot_be_larger_than_it_is_kept() -> None:
    long = "насос " * 10_000
    page = read_serp(
        serp(f"<doc><url>https://a.ru/</url><title>{long}</title><passage>{long}</passage></doc>")
    )
    assert len(page.documents[0].title) <= 300
    assert len(page.documents[0].snippet) <= 1000
    assert not read_serp(serp(f"<doc><url>https://a.ru/{'b' * 3000}</url></doc>")).documents


@given(st.binary(max_size=300))
def test_any_bytes_come_to_a_verdict(data: bytes) -> None:
    """Results are what was found; whoever has to ask again is told why."""
    page = read_serp(data)
    assert (page.verdict is Verdict.RESULTS) == bool(page.documents)
    assert page.reason or page.verdict in (Verdict.RESULTS, Verdict.NOTHING)


@given(st.data())
def test_no_damage_to_a_good_answer_raises(data: st.DataObject) -> None:
    """A byte changed anywhere, or the rest cut off: results are storable text, whatever is left of them."""
    good = bytearray(serp(WHOLE * 3))
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] = data.draw(st.integers(0, 255))
    page = read_serp(bytes(good[: data.draw(st.integers(0, len(good)))]))
    for document in page.documents:
        assert "\0" not in document.title + document.snippet + document.url
        (document.title + document.snippet).encode()


@given(st.text(max_size=300), st.text(max_size=300))
def test_what_the_sandbox_writes_is_what_is_read(title: str, snippet: str) -> None:
    """As a headline and as a passage; spaces at the ends and in a row are not kept."""
    title, snippet = ("".join(c for c in text if c.isprintable()) for text in (title, snippet))
    site = FindableSite("https://firma.ru/", title, snippet)
    page = read_serp(answer_xml("насосы оптом", [site, site], 0).encode())
    as_one_line = " ".join(title.split()), " ".join(snippet.split())
    assert [(it.title, it.snippet) for it in page.documents] == [as_one_line] * 2
