"""The HTML of a letter: escaped, readable by day and by night, and told when it grows too long."""

from __future__ import annotations

import email
import re
from dataclasses import replace

import pytest

from sendonce.domain.engine.message import compile_letter
from sendonce.domain.mailouts.blocks import (
    Button,
    Callout,
    Code,
    Colour,
    Column,
    Columns,
    Draft,
    Heading,
    Image,
    Item,
    ItemList,
    LinkCard,
    Marks,
    Paint,
    Paragraph,
    Quote,
    Span,
    Table,
    whole_variables,
)
from sendonce.domain.mailouts.rendering import GMAIL_CUTS_AT, Hosted, compose, render
from sendonce.domain.mailouts.rendering.styles import BUTTON, ROLES
from tests.golden.sample_letter import SAMPLE_SUBJECT, sample_blocks
from tests.unit.test_message import DATE, JOB, SETTINGS

HOSTILE = "<script>alert('1')</script>\"&"


def text(words: str) -> tuple[Span, ...]:
    return (Span(words),)


def test_all_words_are_escaped_wherever_they_stand() -> None:
    blocks = (
        Paragraph(text(HOSTILE)),
        Heading(1, text(HOSTILE)),
        Button(HOSTILE, "https://example.com"),
        ItemList(Marks.BOXES, (Item((Paragraph(text(HOSTILE)),)),)),
        Callout((), HOSTILE),
        Code(HOSTILE, text(HOSTILE)),
        Image("https://example.com/a.png", HOSTILE, text(HOSTILE)),
        LinkCard("https://example.com", HOSTILE, text(HOSTILE)),
        Table(((text(HOSTILE),),)),
    )
    html = render(blocks, title=HOSTILE).html
    assert "<script>" not in html
    assert html.count("&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;&quot;&amp;") == 13


def test_a_letter_from_a_tree_can_be_built_and_read() -> None:
    letter = compose(Draft(SAMPLE_SUBJECT, sample_blocks(), preheader="Скидка")).letter
    raw = compile_letter(letter, SETTINGS, "m").build(JOB, "a@example.com", {"id": "a&b /я"}, DATE)
    plain_part, html_part = (
        part.get_payload(decode=True).decode() for part in email.message_from_bytes(raw).get_payload()
    )
    assert "Здравствуйте, друзья!" in plain_part
    assert "Здравствуйте, друзья!" in html_part
    assert "https://example.com/news?u=a%26b%20%2F%D1%8F)" in plain_part
    assert 'href="https://example.com/news?u=a%26b%20%2F%D1%8F"' in html_part


def test_the_language_is_that_of_the_words_unless_told() -> None:
    assert '<html lang="ru">' in render((Paragraph(text("Привет")),)).html
    assert '<html lang="en">' in render((Paragraph(text("Hello")),)).html
    assert '<html lang="en">' in render((Paragraph(text("Привет")),), language="en").html


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_colour_reads_by_day_and_by_night(mode: str) -> None:
    """WCAG 2.1 AA: 4.5 to 1. Coloured words may stand on the page and on a grey panel."""
    shade = {name: getattr(role, mode) for name, role in ROLES.items()}
    inks = [name for name, role in ROLES.items() if role.css == "color"]
    washes = [name for name in shade if name.startswith("wash-")]
    for ground in ("page", "panel"):
        for ink in inks:
            assert contrast(shade[ink], shade[ground]) >= 4.5, (ink, ground)
    for wash in washes:
        assert contrast(shade["ink"], shade[wash]) >= 4.5, wash
        assert contrast(shade["link"], shade[wash]) >= 4.5, wash
    assert contrast("#ffffff", BUTTON) >= 4.5


def test_dark_colours_are_written_for_what_is_used_and_no_more() -> None:
    html = render((Paragraph(text("x"), Paint(Colour.RED)),)).html
    style = re.search("<style>(.*?)</style>", html, re.DOTALL)
    assert style
    assert ".ink-red{color:#f4948b!important}" in style[1]
    assert ".page{" in style[1]
    assert "ink-blue" not in style[1]
    assert "column" not in style[1]


def test_columns_stand_side_by_side_and_stack_on_narrow_screens() -> None:
    columns = Columns((Column((Paragraph(text("a")),), 0.25), Column((Paragraph(text("b")),), 0.75)))
    html = render((columns,)).html
    assert "max-width:138px" in html
    assert "max-width:414px" in html
    assert '<!--[if mso]><td width="138" valign="top"><![endif]-->' in html
    assert "@media (max-width:599px){.column{max-width:100%!important}}" in html


def test_images_are_never_wider_than_their_place_and_never_enlarged() -> None:
    image = Image("https://example.com/a.png", "A")
    assert 'width="552" style="display:block;width:auto;max-width:100%' in render((image,)).html
    assert (
        'width="200" style="display:block;width:200px;max-width:100%'
        in render((replace(image, width=200),)).html
    )
    assert 'width="552"' in render((image,), hosted={image.url: Hosted("https://x.ru/1", 2000)}).html
    assert 'width="517"' in render((Quote((image,)),)).html


def test_images_that_programs_do_not_draw_are_told() -> None:
    image = Image("https://example.com/a.webp?x=1", "A")
    [warning] = render((image,)).warnings
    assert "Use PNG, JPEG or GIF" in warning
    assert render((image,), hosted={image.url: Hosted("https://x.ru/1")}).warnings == ()


def test_the_size_is_told_and_so_is_what_gmail_cuts() -> None:
    small = render((Paragraph(text("я" * 100)),))
    assert small.size == len(small.html.encode())
    assert small.warnings == ()
    [warning] = render((Paragraph(text("x" * GMAIL_CUTS_AT)),)).warnings
    assert "Gmail cuts letters at 102 KB" in warning


def test_a_rich_letter_is_far_from_the_limit() -> None:
    assert render(sample_blocks(), title=SAMPLE_SUBJECT).size < 15_000


def test_neighbours_in_one_style_are_one_span() -> None:
    spans = whole_variables([Span("a"), Span("b"), Span("", bold=True), Span("c", bold=True)])
    assert spans == (Span("ab"), Span("c", bold=True))


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_variable_takes_the_style_it_begins_with(cut: int) -> None:
    source = "{{ name }}!?"
    spans = whole_variables([Span("Hi "), Span(source[:cut], bold=True), Span(source[cut:], italic=True)])
    assert "".join(span.text for span in spans) == "Hi {{ name }}!?"
    assert spans[1].text.startswith("{{ name }}")
    assert spans[1].bold
