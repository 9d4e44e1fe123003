"""The plain text of a letter says what the HTML says."""

from __future__ import annotations

import email
from datetime import UTC, datetime

import pytest

from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.engine.message import compile_letter
from sendonce.domain.mailouts.blocks import (
    Button,
    Heading,
    Image,
    Indent,
    Item,
    ItemList,
    LinkCard,
    Marks,
    Paragraph,
    Span,
    Toggle,
)
from sendonce.domain.mailouts.rendering import render

JOB = "0198c5a1-7b1e-7cc3-9d50-0242ac120002"
DATE = datetime(2026, 3, 4, tzinfo=UTC)
SETTINGS = MessageSettings(
    "news@example.com", None, None, "Riga", "https://example.com", "example.com", b"secret"
)


def paragraph(words: str) -> Paragraph:
    return Paragraph((Span(words),))


def test_links_follow_their_words() -> None:
    url = "https://example.com/"
    spans = (Span("see "), Span("our ", link=url), Span("site ", bold=True, link=url), Span("now"))
    assert render((Paragraph(spans),)).text == "see our site (https://example.com/) now\n"


@pytest.mark.parametrize(
    ("words", "url"),
    [
        ("https://example.com/a", "https://example.com/a"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com/путь", "https://example.com/%D0%BF%D1%83%D1%82%D1%8C"),
        ("https://example.com/?a={{ b }}", "https://example.com/?a={{ b | url }}"),
        ("a@example.com", "mailto:a@example.com"),
        ("+7999", "tel:+7999"),
    ],
)
def test_an_address_is_not_said_twice(words: str, url: str) -> None:
    assert words.split("{{")[0] in render((Paragraph((Span(words, link=url),)),)).text
    assert "(" not in render((Paragraph((Span(words, link=url),)),)).text


@pytest.mark.parametrize(
    ("marks", "start", "first", "second"),
    [
        (Marks.BULLETS, 1, "- a", "- b"),
        (Marks.NUMBERS, 9, "9. a", "10. b"),
        (Marks.LETTERS, 3, "c. a", "d. b"),
        (Marks.LETTERS, 26, "z. a", "27. b"),
        (Marks.ROMAN, 4, "iv. a", "v. b"),
        (Marks.ROMAN, 39, "xxxix. a", "40. b"),
        (Marks.BOXES, 1, "[ ] a", "[ ] b"),
    ],
)
def test_items_carry_their_marks(marks: Marks, start: int, first: str, second: str) -> None:
    items = (Item((paragraph("a"),)), Item((paragraph("b"),)))
    assert render((ItemList(marks, items, start),)).text == f"{first}\n{second}\n"


def test_what_is_nested_is_indented() -> None:
    inner = ItemList(Marks.NUMBERS, (Item((paragraph("b\nc"),)),))
    tree = (ItemList(Marks.BULLETS, (Item((paragraph("a"), inner)),)), Indent((paragraph("d"),)))
    assert render(tree).text == "- a\n  1. b\n     c\n\n  d\n"


def test_headings_toggles_buttons_and_images() -> None:
    tree = (
        Heading(1, (Span("Big"),)),
        Heading(2, (Span("Small"),)),
        Toggle((Span("More"),), (paragraph("inside"),)),
        Button("Buy", "https://example.com/buy"),
        Image("https://example.com/a.png", "A view", link="https://example.com/a"),
        Image("https://example.com/b.png"),
        LinkCard("https://example.com/c"),
        paragraph("  "),
    )
    assert render(tree).text == (
        "Big\n===\n\nSmall\n-----\n\n▾ More\n\n  inside\n\nBuy: https://example.com/buy\n\n"
        "A view (https://example.com/a)\n\nhttps://example.com/c\n\n  \n"
    )


@pytest.mark.parametrize("name", ["Jo", "Иван-Мария Петрова", ""])
def test_a_heading_is_underlined_as_long_as_it_is_read(name: str) -> None:
    """The line is drawn for each reader: variables have the length of their values."""
    heading = Heading(
        1, (Span('Hi {{ name | default: "friends" }}, '), Span("{{ town }}", link="https://x.ru"))
    )
    letter = Letter("x", "", "", render((heading,)).text)
    raw = compile_letter(letter, SETTINGS, "m").build(
        JOB, "a@example.com", {"name": name, "town": "Riga"}, DATE
    )
    payload = email.message_from_bytes(raw).get_payload()
    assert isinstance(payload, list)
    title, line, *_ = payload[0].get_payload(decode=True).decode().splitlines()
    assert title == f"Hi {name or 'friends'}, Riga (https://x.ru)"
    assert line == "=" * len(title)
