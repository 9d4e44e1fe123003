"""Notion's blocks become a letter's, and what cannot be mailed is told to the author."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sendonce.adapters.notion.blocks import convert_blocks
from sendonce.domain.mailouts.blocks import (
    Button,
    Callout,
    Colour,
    Columns,
    Image,
    ItemList,
    LinkCard,
    Marks,
    Paint,
    Paragraph,
    Quote,
    Table,
    files,
    plain,
    walk,
)
from sendonce.domain.mailouts.rendering import Hosted, render
from sendonce.errors import BadInput
from tests.golden.cases import BLOCKS
from tests.golden.sample_letter import block, words

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "notion_blocks.json"
SKIPPED = {
    "child_page",
    "child_database",
    "link_to_page",
    "breadcrumb",
    "table_of_contents",
    "template",
    "tab",
}
SKIPPED |= {"meeting_notes", "transcription", "unsupported", "table_row"}


def text_of(blocks: list[dict[str, Any]]) -> str:
    return render(convert_blocks(blocks).blocks).text


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of Notion's blocks is not beside this checkout")
def test_our_samples_cover_every_type_of_the_corpus() -> None:
    corpus = json.loads(CORPUS.read_text(encoding="utf-8"))
    assert {one["type"] for one in corpus} == set(BLOCKS)
    content = convert_blocks(corpus)
    assert {
        kind for kind in SKIPPED if any(f"({kind})" in warning for warning in content.warnings)
    } == SKIPPED


@pytest.mark.parametrize("kind", sorted(BLOCKS))
def test_a_block_is_shown_or_its_author_is_told(kind: str) -> None:
    content = convert_blocks(BLOCKS[kind])
    if kind in SKIPPED:
        assert not content.blocks
        assert all(warning.startswith("Block 1 (") and "skipped" in warning for warning in content.warnings)
        assert len(content.warnings) == len(BLOCKS[kind])
    else:
        assert content.blocks


def test_a_warning_names_the_block_and_where_it_stands() -> None:
    page = [
        block("heading_1", text="Наши новости"),
        block("toggle", {"type": "child_page", "child_page": {"title": "План"}}, text="Подробнее"),
        {"type": "hologram", "hologram": {}},
    ]
    assert convert_blocks(page).warnings == (
        "Block 2.1 (child_page), near “Подробнее”: skipped (“План”): "
        "a page of its own; link to it if it is public.",
        "Block 3 (hologram), near “Подробнее”: skipped: a letter cannot hold it.",
    )


def test_neighbouring_items_are_one_list_and_boxes_are_kept() -> None:
    page = [block("bulleted_list_item", text=text) for text in "ab"]
    page += [block("numbered_list_item", text="c", list_start_index=3), block("numbered_list_item", text="d")]
    page += [
        block("numbered_list_item", text="e", list_start_index=9),
        block("to_do", text="f", checked=True),
    ]
    lists = [one for one in convert_blocks(page).blocks if isinstance(one, ItemList)]
    assert [(one.marks, one.start, len(one.items)) for one in lists] == [
        (Marks.BULLETS, 1, 2),
        (Marks.NUMBERS, 3, 2),
        (Marks.NUMBERS, 9, 1),
        (Marks.BOXES, 1, 1),
    ]
    assert lists[-1].items[0].checked


def test_nesting_of_any_depth_keeps_its_words() -> None:
    """A thousand levels do not break it; past those that can be drawn they are shown on one level."""
    tower = block("quote", text="level 999")
    for level in range(998, -1, -1):
        tower = block("quote", tower, text=f"level {level}")
    content = convert_blocks([tower])
    rendered = render(content.blocks)
    assert all(f"level {level}\n" in rendered.text for level in range(1000))
    assert sum(isinstance(one, Quote) for one in walk(content.blocks)) == 1000
    assert "nested more than 24 deep" in content.warnings[0]


def test_colours_of_blocks_and_words() -> None:
    [paragraph] = convert_blocks(
        [
            block(
                "paragraph", text=[words("a", color="red"), words("b", color="blue_background")], color="gray"
            )
        ]
    ).blocks
    assert isinstance(paragraph, Paragraph)
    assert paragraph.paint == Paint(colour=Colour.GRAY)
    assert [span.paint for span in paragraph.text] == [Paint(Colour.RED), Paint(None, Colour.BLUE)]


def test_a_bold_link_alone_is_a_button() -> None:
    link = "https://example.com/?u={{ id }}"
    [button, paragraph] = convert_blocks(
        [
            block("paragraph", text=[words("Купить", link, bold=True), words(" ")]),
            block("paragraph", text=[words("Купить", link, bold=True), words(" сейчас")]),
        ]
    ).blocks
    assert button == Button("Купить", "https://example.com/?u={{ id | url }}")
    assert isinstance(paragraph, Paragraph)


def test_mentions_become_words() -> None:
    page = [
        {
            "type": "paragraph",
            "paragraph": {
                "rich_text": [
                    _mention("@Анна", "user"),
                    words(", "),
                    _mention("2026-12-01", "date", start="2026-12-01", end="2026-12-02T09:30:00.000+03:00"),
                    words(", "),
                    _mention("План", "page", href="https://www.notion.so/x"),
                ]
            },
        }
    ]
    assert text_of(page) == "Анна, 1 декабря 2026 – 2 декабря 2026, 09:30, План\n"
    assert convert_blocks(page, language="en").blocks[0].text[0].text.startswith("Анна, 1 December 2026")  # type: ignore[union-attr]


def _mention(text: str, kind: str, href: str | None = None, **body: object) -> dict[str, Any]:
    return {"type": "mention", "plain_text": text, "href": href, "mention": {"type": kind, kind: body}}


def test_columns_share_the_width_and_tables_are_squared() -> None:
    page = [
        {
            "type": "column_list",
            "children": [
                {
                    "type": "column",
                    "column": {"width_ratio": 0.25},
                    "children": [block("paragraph", text="a")],
                },
                {"type": "column", "column": {}, "children": [block("paragraph", text="b")]},
            ],
        },
        {
            "type": "table",
            "table": {"has_row_header": True},
            "children": [
                {"type": "table_row", "table_row": {"cells": [[words("a")], [words("b")]]}},
                {"type": "table_row"},
            ],
        },
    ]
    [columns, table] = convert_blocks(page).blocks
    assert isinstance(columns, Columns)
    assert [column.share for column in columns.columns] == [0.25, 0.75]
    assert isinstance(table, Table)
    assert [len(row) for row in table.rows] == [2, 2]
    assert (table.header_row, table.header_column) == (False, True)


def test_notions_own_files_are_shown_from_their_copies_or_not_at_all() -> None:
    """Their addresses die within the hour, and carry a signature that nobody should see."""
    secret = "https://prod-files.example.com/a/pic.png?X-Amz-Signature=abc"
    page = [
        {"type": "image", "image": {"type": "file", "file": {"url": secret}, "caption": [words("Вид")]}},
        {"type": "file", "file": {"type": "file", "file": {"url": secret}, "name": "report.csv"}},
    ]
    content = convert_blocks(page)
    assert [type(one) for one in files(content.blocks)] == [Image, LinkCard]
    without = render(content.blocks)
    assert "X-Amz" not in without.html + without.text + str(without.warnings)
    assert [warning.split(":")[0] for warning in without.warnings] == [
        "“Вид” was left out",
        "“report.csv” was left out",
    ]
    copy = Hosted("https://mail.example.com/assets/1", 300)
    shown = render(content.blocks, hosted={secret: copy})
    assert '<img src="https://mail.example.com/assets/1" alt="Вид" width="300"' in shown.html
    assert "report.csv: https://mail.example.com/assets/1" in shown.text
    assert not shown.warnings


def test_a_variable_cut_in_two_by_the_editor_is_whole_again() -> None:
    assert text_of([block("paragraph", text=[words("Hi {{ "), words("name", bold=True), words(" }}!")])]) == (
        "Hi {{ name }}!\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ([words("Hello {{ name")], "Block 1 (paragraph), near “Hello {{ name”: '{{ name' is not a variable"),
        ([words("x", "{{ url }}")], "Block 1 (paragraph), near “x”: The address '{{ url }}' has a variable"),
    ],
)
def test_what_stops_a_letter_is_told_with_its_place(text: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(BadInput) as refusal:
        convert_blocks([block("paragraph", text=text)])
    assert message in str(refusal.value)


def test_links_inside_notion_are_left_out_with_a_warning() -> None:
    content = convert_blocks([block("paragraph", text=[words("план", "/a00000")])])
    assert "the link to '/a00000' was left out" in content.warnings[0]


def test_what_is_in_the_trash_is_not_sent() -> None:
    page = [{**block(kind, text="x"), "in_trash": True} for kind in ("paragraph", "to_do")]
    assert convert_blocks(page).blocks == ()


@pytest.mark.parametrize("kind", sorted(BLOCKS))
@pytest.mark.parametrize(
    "body", [None, [], "x", {"rich_text": [None, 7, {"plain_text": None}], "icon": 5, "url": 7}]
)
def test_odd_answers_break_nothing(kind: str, body: object) -> None:
    """Nor does a value that is none show in the letter."""
    odd = {"type": kind, kind: body, "children": [None, 1, {"type": 5}, {}]}
    letter = render(convert_blocks([odd]).blocks)
    assert "None" not in letter.html + letter.text


def test_control_characters_that_were_pasted_are_dropped() -> None:
    assert text_of([block("paragraph", text="a\x0bb\x00\ud83dc")]) == "abc\n"


def test_a_callout_without_words_shows_its_children() -> None:
    [callout] = convert_blocks(
        [block("callout", block("paragraph", text="a"), text="", icon={"emoji": "💡"})]
    ).blocks
    assert isinstance(callout, Callout)
    assert plain(callout.blocks[0].text) == "a"  # type: ignore[union-attr]
