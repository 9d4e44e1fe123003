"""What a new workspace begins with: a page, the two tables on it, a letter, and a page that nobody shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from sendonce.sandbox.notion.contents import Contents
from sendonce.sandbox.notion.files import Files, striped_png
from sendonce.sandbox.notion.rich_text import text
from sendonce.sandbox.notion.workspace import PERSON


def _fixed(name: str) -> str:
    """The same id in every sandbox, so that it can stand in a script."""
    return str(uuid5(NAMESPACE_URL, f"https://notion.sandbox/{name}"))


@dataclass(frozen=True)
class Seeds:
    parent: str = _fixed("parent")
    letters: str = _fixed("letters")
    letters_source: str = _fixed("letters/source")
    errors: str = _fixed("errors")
    errors_source: str = _fixed("errors/source")
    letter: str = _fixed("letter")
    unshared: str = _fixed("unshared")


_STATUSES = ("Черновик", "Готово к отправке", "Отправляется", "Отправлено", "Ошибка", "Отменено")
_NUMBERS = (
    "Запланировано",
    "Отправлено",
    "Доставлено",
    "Вернулось",
    "Жалобы",
    "Отписались",
    "Не отправлено",
    "Под вопросом",
)
_LETTERS: dict[str, Any] = {
    "Название": {"title": {}},
    "Тема": {"rich_text": {}},
    "Прехедер": {"rich_text": {}},
    "От кого": {"rich_text": {}},
    "Ответить на": {"email": {}},
    "Язык": {"rich_text": {}},
    "Отправить в": {"date": {}},
    "Статус": {"select": {"options": [{"name": name} for name in _STATUSES]}},
    "Тест": {"checkbox": {}},
    "Время отправки": {"date": {}},
    "Причина": {"rich_text": {}},
    "Предупреждения": {"rich_text": {}},
    **{name: {"number": {}} for name in _NUMBERS},
}
_ERRORS: dict[str, Any] = {
    "Ошибка": {"title": {}},
    "Письмо": {"relation": {"data_source_id": Seeds.letters_source, "single_property": {}}},
    "E-mail": {"email": {}},
    "Вид": {"select": {}},
    "Сообщение": {"rich_text": {}},
    "Код": {"rich_text": {}},
    "Время": {"date": {}},
    "Ключ": {"rich_text": {}},
}


def plant(contents: Contents, files: Files, *, with_tables: bool) -> None:
    seeds = Seeds()
    _root_page(contents, seeds.parent, "Рассылки")
    _root_page(contents, seeds.unshared, "Личное")
    contents.workspace.unshared.append(seeds.unshared)
    files.put("stripes.png", striped_png(552, 120))
    if not with_tables:
        return
    _table(contents, "Письма", _LETTERS, seeds.letters, seeds.letters_source)
    _table(contents, "Ошибки", _ERRORS, seeds.errors, seeds.errors_source)
    properties = {
        "Название": {"title": text("Осенние новости")},
        "Тема": {"rich_text": text("Осенние новости: что мы построили")},
        "Прехедер": {"rich_text": text("Три новости и одно приглашение")},
        "Статус": {"select": {"name": "Готово к отправке"}},
    }
    parent = {"data_source_id": seeds.letters_source}
    contents.create_page({"parent": parent, "properties": properties}, seeds.letter, PERSON)
    contents.append(seeds.letter, sample_letter(), any_type=True)


def _root_page(contents: Contents, identity: str, title: str) -> None:
    page = contents.workspace.new_record({"type": "workspace", "workspace": True}, identity, PERSON)
    contents.workspace.pages[identity] = {**page, "values": {"title": text(title)}}


def _table(contents: Contents, title: str, columns: dict[str, Any], identity: str, source: str) -> None:
    body = {
        "parent": {"page_id": Seeds.parent},
        "title": text(title),
        "initial_data_source": {"properties": columns},
    }
    contents.create_database(body, identity, source)


def sample_letter() -> list[dict[str, Any]]:
    """A letter with most kinds of blocks that a letter can have, and one that it cannot."""
    bold_link = {
        "text": {"content": "Прийти на встречу", "link": {"url": "https://example.com/meet"}},
        "annotations": {"bold": True},
    }
    return [
        _block("heading_1", "Осенние новости"),
        _block("paragraph", 'Здравствуйте, {{ name | default: "друзья" }}!'),
        {"image": {"type": "file", "file": {"name_here": "stripes.png"}, "caption": text("Полоски")}},
        _block("heading_2", "Что нового"),
        _block("bulleted_list_item", "Каталог", children=[_block("bulleted_list_item", "и поиск по нему")]),
        _block("bulleted_list_item", "Доставка по выходным"),
        _block("numbered_list_item", "Сначала прочтите"),
        _block("numbered_list_item", "Потом приходите"),
        _block("to_do", "Рассказать друзьям", checked=False),
        _block("quote", "Лучшее письмо — короткое."),
        _block(
            "callout", "Встреча в четверг", icon={"type": "emoji", "emoji": "💡"}, color="blue_background"
        ),
        {"paragraph": {"rich_text": [bold_link], "color": "default"}},
        _table_block([("День", "Час"), ("Четверг", "19:00")]),
        {
            "column_list": {},
            "children": [
                {"column": {}, "children": [_block("paragraph", "Слева")]},
                {"column": {}, "children": [_block("paragraph", "Справа")]},
            ],
        },
        _block("toggle", "Подробности", children=[_block("paragraph", "Вход свободный.")]),
        _block("code", "print('привет')", language="python", caption=[]),
        {"bookmark": {"url": "https://example.com", "caption": []}},
        {"divider": {}},
        {"unsupported": {"block_type": "button"}},
    ]


def _block(kind: str, words: str, children: Any = None, **more: Any) -> dict[str, Any]:
    body = {"rich_text": text(words), "color": "default", **more}
    return {kind: body, "type": kind, **({"children": children} if children else {})}


def _table_block(rows: list[tuple[str, ...]]) -> dict[str, Any]:
    body = {"table_width": len(rows[0]), "has_column_header": True, "has_row_header": False}
    cells = [{"table_row": {"cells": [text(cell) for cell in row]}} for row in rows]
    return {"table": body, "type": "table", "children": cells}
