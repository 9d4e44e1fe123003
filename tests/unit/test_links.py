"""Addresses: what may be linked to, and where a variable may stand."""

from __future__ import annotations

import email
from dataclasses import replace
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.domain.engine.message import compile_letter
from sendonce.domain.engine.templates import Template, Variable, url_encoded
from sendonce.domain.mailouts.links import image_url, link_url
from sendonce.errors import BadInput
from tests.unit.test_message import DATE, JOB, LETTER, SETTINGS


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ("https://example.com/?a=1&b=2#c", "https://example.com/?a=1&b=2#c"),
        (" HTTP://Example.COM:8080 ", "http://example.com:8080"),
        (
            "https://пример.рф/путь?q=я б",
            "https://xn--e1afmkfd.xn--p1ai/%D0%BF%D1%83%D1%82%D1%8C?q=%D1%8F%20%D0%B1",
        ),
        ("https://example.com/%D0%B0", "https://example.com/%D0%B0"),
        ('https://example.com/"><script>', "https://example.com/%22%3E%3Cscript%3E"),
        ("https://[::1]:80/x", "https://[::1]:80/x"),
        ("mailto:a@example.com", "mailto:a@example.com"),
        ("mailto:a@example.com?subject={{ name }}", "mailto:a@example.com?subject={{ name | url }}"),
        ("tel:+7 (999) 123-45-67", "tel:+7(999)123-45-67"),
        ("https://example.com/{{ a }}?b={{ c | default: 'd e' }}", None),
    ],
)
def test_an_address_is_kept_or_made_fit(source: str, url: str | None) -> None:
    expected = url or "https://example.com/{{ a | url }}?b={{ c | default: 'd e' | url }}"
    assert link_url(source) == expected
    assert link_url(expected) == expected


@pytest.mark.parametrize(
    "source",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,<script>",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://example.com",
        "//example.com",
        "/page",
        "#top",
        "page.html",
        "",
        "https://",
        "https:///example.com",
        "https://user@example.com/",
        "https://good.com\\@evil.com/",
        "https://exa mple.com/",
        "https://example.com/\x00",
        "mailto:",
        "tel:call-me",
    ],
)
def test_other_addresses_are_none(source: str) -> None:
    assert link_url(source) is None


@pytest.mark.parametrize("source", ["mailto:a@example.com", "tel:+7", "data:image/png;base64,x", "cid:1"])
def test_images_are_on_the_web(source: str) -> None:
    assert image_url(source) is None
    assert image_url("https://example.com/a.png") == "https://example.com/a.png"


@pytest.mark.parametrize(
    "source",
    [
        "{{ url }}",
        "{{ scheme }}://example.com",
        "https://{{ host }}/",
        "https://{{ sub }}.example.com/",
        "https://example.com{{ path }}",
        "https://example.com:{{ port }}/",
        "mailto:{{ who }}",
        "mailto:{{ who }}@example.com",
        "tel:{{ phone }}",
    ],
)
def test_a_variable_before_the_path_is_refused_with_the_reason(source: str) -> None:
    with pytest.raises(BadInput, match="has a variable where its site should be"):
        link_url(source)


def test_url_is_a_mark_of_a_variable() -> None:
    assert Template.parse("{{ a | url }}").parts == (Variable("a", None, True),)
    assert Template.parse("{{ a | default: 'x y'|url}}").parts == (Variable("a", "x y", True),)
    assert Variable("a", "x y", True).resolve({}) == "x%20y"
    assert Variable("a", url=True).resolve({"a": "я&=/"}) == "%D1%8F%26%3D%2F"


def bodies(**fields: str) -> list[str]:
    html = '<a href="https://example.com/?u={{ id | url }}&amp;v=1">x</a>'
    letter = replace(
        LETTER, subject="x", preheader="", html=html, text="x https://example.com/?u={{ id | url }}&v=1"
    )
    raw = compile_letter(letter, SETTINGS, "m").build(JOB, "a@example.com", fields, DATE)
    parts = email.message_from_bytes(raw).get_payload()
    return [part.get_payload(decode=True).decode() for part in parts]


@pytest.mark.parametrize(
    "value", ['"><script>', "a&b=c#d", "../../x", "https://evil.com", "x\r\ny", "пример", " "]
)
def test_a_value_cannot_leave_its_place_in_an_address(value: str) -> None:
    text, html = bodies(id=value)
    assert f"?u={url_encoded(value)}&v=1" in text
    assert f'?u={url_encoded(value)}&amp;v=1"' in html
    assert unquote(url_encoded(value)) == value


def test_an_unfit_value_in_an_address_is_refused_by_name() -> None:
    with pytest.raises(BadInput, match="'id' contains U\\+0000"):
        bodies(id="a\x00")


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_is_an_address_or_is_not(text: str) -> None:
    """Whatever comes out begins with a scheme that we know and holds nothing that could end an attribute."""
    try:
        url = link_url(text)
    except BadInput:
        return
    assert url is None or (url.startswith(("http", "mailto:", "tel:")) and not set(url) & set('"<> \n\t'))
