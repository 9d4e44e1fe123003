"""A letter with a bit of everything, as Notion would give it: for golden files and for docs/images."""

from __future__ import annotations

from typing import Any

from sendonce.adapters.notion.blocks import convert_blocks
from sendonce.domain.mailouts.blocks import Block

SAMPLE_SUBJECT = "Майские новости пекарни «Колос»"
IMAGE = "https://example.com/bread.png"

Json = dict[str, Any]


def words(text: str, link: str | None = None, **annotations: object) -> Json:
    return {"type": "text", "plain_text": text, "href": link, "annotations": annotations}


def block(kind: str, *children: Json, text: str | list[Json] = "", **body: object) -> Json:
    rich_text = [words(text)] if isinstance(text, str) else text
    return {"type": kind, kind: {"rich_text": rich_text, **body}, "children": list(children)}


def row(*cells: str) -> Json:
    return {"type": "table_row", "table_row": {"cells": [[words(cell)] for cell in cells]}}


def sample_page() -> list[Json]:
    greeting = [
        words("Здравствуйте, {{ name | default: «друзья» }}! В мае мы "),
        words("открыли вторую пекарню", bold=True),
        words(", испекли "),
        words("первую тысячу", italic=True),
        words(" куличей и выучили слово "),
        words("круассан", code=True),
        words(". Подробности — "),
        words("на сайте", link="https://example.com/news?u={{ id }}"),
        words(", а главное — "),
        words("ниже", color="green"),
        words("."),
    ]
    return [
        block("heading_1", text=SAMPLE_SUBJECT),
        block("paragraph", text=greeting),
        block(
            "callout",
            text="До 15 мая на весь ржаной хлеб скидка 20 %. Назовите кассиру слово «колос».",
            color="yellow_background",
            icon={"type": "emoji", "emoji": "🥖"},
        ),
        block("paragraph", text=[words("Выбрать хлеб", "https://example.com/shop", bold=True)]),
        block("image", type="external", external={"url": IMAGE}, caption=[words("Утро на улице Ленина")]),
        block("heading_2", text="Что нового"),
        block(
            "bulleted_list_item",
            block("bulleted_list_item", text="пшеничная, 1 кг"),
            block("bulleted_list_item", text="ржаная, 1 кг"),
            text="Мука теперь и на развес",
        ),
        block("bulleted_list_item", text="Кофе с собой — с шести утра"),
        block("to_do", text="Открыть вторую пекарню", checked=True),
        block("to_do", text="Испечь торт на день города", checked=False),
        block("heading_2", text="Цены и часы"),
        *sample_tables(),
        block("quote", text="Лучший багет по эту сторону Волги."),
        block(
            "toggle", block("paragraph", text="В четыре утра: тесту нужно время."), text="Когда вы встаёте?"
        ),
        block("code", text="мука 500 г\nвода 350 мл\nсоль  10 г", caption=[], language="plain text"),
        {"type": "equation", "equation": {"expression": "вода / мука = 0,7"}},
        {
            "type": "bookmark",
            "bookmark": {"url": "https://example.com/bread", "caption": [words("Как мы печём")]},
        },
        {"type": "divider", "divider": {}},
        block("paragraph", text="Ваша пекарня «Колос»", color="gray"),
    ]


def sample_tables() -> list[Json]:
    return [
        {
            "type": "table",
            "table": {"has_column_header": True},
            "children": [
                row("Хлеб", "Вес", "Цена"),
                row("Ржаной", "600 г", "95 ₽"),
                row("Багет", "250 г", "70 ₽"),
            ],
        },
        {
            "type": "column_list",
            "children": [
                block(
                    "column",
                    block("heading_3", text="Ленина, 1"),
                    block("paragraph", text="Каждый день, 6–21"),
                ),
                block("column", block("heading_3", text="Мира, 15"), block("paragraph", text="Пн–сб, 7–20")),
            ],
        },
    ]


def sample_blocks() -> tuple[Block, ...]:
    content = convert_blocks(sample_page())
    assert not content.warnings
    return content.blocks
