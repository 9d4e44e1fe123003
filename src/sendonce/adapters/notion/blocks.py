"""Blocks of a Notion page, as its API of 2026-03-11 gives them, into the blocks of a letter.

Whoever fetched them has put the children of each block under its ``children``; those of a synced copy
are the children of its original. Nothing is fetched here.

Three kinds of blocks:

    shown      text, lists, tables, columns, images, …
    pointed at films, sounds, files, embeds: a card with a link
    skipped    what lives in Notion only: each with a warning that names it and where it stands
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sendonce.adapters.notion.text import NotionText, listed, mapped, paint_of, plain_text, text_in
from sendonce.domain.engine.letters import language_of
from sendonce.domain.engine.templates import Template
from sendonce.domain.mailouts.blocks import (
    MAX_DEPTH,
    Block,
    Callout,
    Code,
    Column,
    Columns,
    Divider,
    Equation,
    Heading,
    Image,
    Indent,
    Item,
    ItemList,
    LinkCard,
    Marks,
    Paint,
    Paragraph,
    Quote,
    RichText,
    Table,
    Toggle,
    button_of,
    plain,
    seen,
)
from sendonce.domain.mailouts.links import Url, image_url, link_url

_Json = Mapping[str, Any]

_MARKS = {"bulleted_list_item": Marks.BULLETS, "numbered_list_item": Marks.NUMBERS, "to_do": Marks.BOXES}
_FORMATS = {"letters": Marks.LETTERS, "roman": Marks.ROMAN}
_SKIPPED = {
    "child_page": "a page of its own; link to it if it is public",
    "child_database": "a database",
    "link_to_page": "a link inside Notion; link to the page if it is public",
    "breadcrumb": "navigation of Notion",
    "table_of_contents": "navigation of Notion",
    "template": "a button of Notion",
    "tab": "tabs, which need clicks",
    "meeting_notes": "notes of a meeting",
    "transcription": "notes of a meeting",
    "unsupported": "Notion does not tell what is in it; for a button, write a bold link alone in a paragraph",
    "table_row": "a row outside of a table",
}


@dataclass(frozen=True, slots=True)
class NotionContent:
    blocks: tuple[Block, ...]
    warnings: tuple[str, ...]


def convert_blocks(blocks: Sequence[_Json], language: str | None = None) -> NotionContent:
    """The letter's blocks. ``language`` is that of dates; None looks at the words of the page.

    Raises BadInput, with the place, for a ``{{`` that is no variable or a variable in a link's host.
    """
    language = language or language_of("".join(plain_text(block) for block in blocks))
    reader = _Reader(language)
    converted = reader.blocks(blocks, (), 0)
    return NotionContent(tuple(converted), tuple(reader.warnings))


class _Reader:
    """``path`` is a block's number in its parent, after the numbers of those around it."""

    def __init__(self, language: str) -> None:
        self.warnings: list[str] = []
        self._text = NotionText(language, self._warn)
        self._near = ""

    def blocks(self, blocks: Iterable[Any], path: tuple[int, ...], depth: int) -> list[Block]:
        converted: list[Block] = []
        run: list[tuple[_Json, tuple[int, ...]]] = []
        for number, block in enumerate(map(mapped, blocks), 1):
            here = (*path, number)
            if run and not _continues([one for one, _ in run], block):
                converted += self._list(run, depth)
                run = []
            if block.get("type") in _MARKS:
                run.append((block, here))
            elif not block.get("in_trash"):
                converted += self._block(block, here, depth)
        return converted + (self._list(run, depth) if run else [])

    def _block(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        kind = str(block.get("type"))
        body = mapped(block.get(kind))
        self._near = plain_text(block).strip() or self._near
        place = _place(path, kind, self._near)
        if kind in _SHOWN:
            return _SHOWN[kind](self, block, path, depth)
        if kind in {"video", "audio", "pdf", "file", "bookmark", "embed", "link_preview"}:
            return self._card(body, kind, place)
        name = (
            text_in(body.get("title")) or text_in(body.get("rich_text")) or str(body.get("block_type") or "")
        )
        why = _SKIPPED.get(kind, "a letter cannot hold it")
        self._warn(place, f"skipped{f' (“{name}”)' if name else ''}: {why}.")
        return []

    def _inner(self, block: _Json, path: tuple[int, ...], depth: int) -> tuple[Block, ...]:
        """The children. Past the deepest level that is drawn, all that follows stands on that level."""
        children = listed(block.get("children"))
        if children and depth >= MAX_DEPTH:
            kind = str(block.get("type"))
            self._warn(_place(path, kind, self._near), f"nested more than {MAX_DEPTH} deep; shown flatter.")
            children = _flattened(children)
        return tuple(self.blocks(children, path, depth + 1))

    def _words(self, block: _Json, path: tuple[int, ...], key: str = "rich_text") -> RichText:
        kind = str(block.get("type"))
        return self._text.read(mapped(block.get(kind)).get(key), _place(path, kind, self._near))

    def _with_words(self, block: _Json, path: tuple[int, ...], depth: int) -> tuple[Block, ...]:
        """A block's own text as a paragraph, then its children."""
        words = self._words(block, path)
        lead = (Paragraph(words),) if plain(words).strip() else ()
        return (*lead, *self._inner(block, path, depth))

    # --- text -----------------------------------------------------------------------------------

    def _paragraph(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        words = self._words(block, path)
        blocks: list[Block] = []
        if plain(words).strip():
            blocks.append(button_of(words) or Paragraph(words, _paint(block)))
        inner = self._inner(block, path, depth)
        return [*blocks, Indent(inner)] if inner else blocks

    def _heading(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        """A heading that can be folded is open, and what it folds follows it."""
        level = int(str(block.get("type"))[-1])
        words = self._words(block, path)
        heading = [Heading(level, words, _paint(block))] if plain(words).strip() else []
        return [*heading, *self._inner(block, path, depth)]

    def _quote(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        inner = self._with_words(block, path, depth)
        return [Quote(inner, _paint(block))] if inner else []

    def _callout(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        inner = self._with_words(block, path, depth)
        icon = mapped(mapped(block.get("callout")).get("icon")).get("emoji")
        return [Callout(inner, icon if isinstance(icon, str) else "", _paint(block))] if inner else []

    def _toggle(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        return [Toggle(self._words(block, path), self._inner(block, path, depth), _paint(block))]

    def _code(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        text = seen(text_in(mapped(block.get("code")).get("rich_text"))).rstrip("\n")
        Template.parse(text, _place(path, "code", self._near))
        return [Code(text, self._words(block, path, "caption")), *self._inner(block, path, depth)]

    def _equation(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        expression = seen(str(mapped(block.get("equation")).get("expression") or ""))
        equation = [Equation(expression)] if expression else []
        return [*equation, *self._inner(block, path, depth)]

    def _divider(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        return [Divider(), *self._inner(block, path, depth)]

    # --- lists, tables, columns -----------------------------------------------------------------

    def _list(self, run: Sequence[tuple[_Json, tuple[int, ...]]], depth: int) -> list[Block]:
        first = mapped(run[0][0].get(str(run[0][0].get("type"))))
        marks = _MARKS[str(run[0][0].get("type"))]
        if marks is Marks.NUMBERS:
            marks = _FORMATS.get(str(first.get("list_format")), marks)
        start = first.get("list_start_index")
        items = [self._item(block, path, depth) for block, path in run if not block.get("in_trash")]
        if not items:
            return []
        return [ItemList(marks, tuple(items), start if isinstance(start, int) else 1)]

    def _item(self, block: _Json, path: tuple[int, ...], depth: int) -> Item:
        checked = mapped(block.get("to_do")).get("checked") is True
        self._near = plain_text(block).strip() or self._near
        return Item(self._with_words(block, path, depth), _paint(block), checked)

    def _table(self, block: _Json, path: tuple[int, ...], _depth: int) -> list[Block]:
        body = mapped(block.get("table"))
        place = _place(path, "table", self._near)
        rows = [
            listed(mapped(mapped(row).get("table_row")).get("cells")) for row in listed(block.get("children"))
        ]
        width = max(map(len, rows), default=0)
        cells = (
            tuple(self._text.read(cell, place) for cell in [*row, *[[]] * (width - len(row))]) for row in rows
        )
        table = Table(tuple(cells), body.get("has_column_header") is True, body.get("has_row_header") is True)
        return [table] if width else []

    def _columns(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        columns = []
        for number, column in enumerate(map(mapped, listed(block.get("children"))), 1):
            share = mapped(column.get("column")).get("width_ratio")
            wide = float(share) if isinstance(share, int | float) and 0 < share <= 1 else None
            columns.append((self._inner(column, (*path, number), depth + 1), wide))
        known = [wide for _, wide in columns if wide]
        rest = (1 - sum(known)) / (len(columns) - len(known)) if len(known) < len(columns) else 0
        usual = rest if rest > 0 else 1 / max(len(columns), 1)
        return [Columns(tuple(Column(inner, wide or usual) for inner, wide in columns))] if columns else []

    def _contents(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        """A synced block, or a column that lost its neighbours: what is in it, in its place."""
        inner = self._inner(block, path, depth)
        source = mapped(mapped(block.get("synced_block")).get("synced_from"))
        if source and not inner:
            self._warn(_place(path, "synced_block", self._near), "skipped: its original could not be read.")
        return list(inner)

    # --- files and links ------------------------------------------------------------------------

    def _image(self, block: _Json, path: tuple[int, ...], depth: int) -> list[Block]:
        place = _place(path, "image", self._near)
        body = mapped(block.get("image"))
        caption = self._text.read(body.get("caption"), place)
        address, expires = _file(body)
        url = self._text.checked(image_url, address, place)
        if url is None:
            self._warn(place, f"skipped: {address[:80]!r} is no address of an image.")
            return list(self._inner(block, path, depth))
        image = Image(url, " ".join(plain(caption).split()), caption, expires=expires)
        return [image, *self._inner(block, path, depth)]

    def _card(self, body: _Json, kind: str, place: str) -> list[Block]:
        caption = self._text.read(body.get("caption"), place)
        address, expires = _file(body) if "url" not in body else (str(body["url"]), False)
        url: Url | None = self._text.checked(link_url, address, place)
        if url is None:
            self._warn(place, f"skipped: {address[:80]!r} is no address on the web.")
            return []
        title = seen(str(body.get("name") or "")) or (_file_name(address) if expires else "")
        if kind in {"video", "audio", "embed"}:
            self._warn(place, "shown as a link: a letter cannot play it.")
        return [LinkCard(url, title, caption, expires)]

    def _warn(self, place: str, what: str) -> None:
        self.warnings.append(f"{place}: {what}")


_Handler = Callable[[_Reader, _Json, tuple[int, ...], int], list[Block]]
_SHOWN: dict[str, _Handler] = {
    "paragraph": _Reader._paragraph,
    **{f"heading_{level}": _Reader._heading for level in range(1, 5)},
    "quote": _Reader._quote,
    "callout": _Reader._callout,
    "toggle": _Reader._toggle,
    "code": _Reader._code,
    "equation": _Reader._equation,
    "divider": _Reader._divider,
    "image": _Reader._image,
    "table": _Reader._table,
    "column_list": _Reader._columns,
    "column": _Reader._contents,
    "synced_block": _Reader._contents,
}


def _place(path: tuple[int, ...], kind: str, near: str) -> str:
    """Where an author looks: «Block 5.2 (child_page), near “Наши новости”»: its words or those before it."""
    number = ".".join(map(str, path[:6])) + (".…" if len(path) > 6 else "")
    words = " ".join(near.split())
    shown = words if len(words) <= 40 else words[:39] + "…"
    return f"Block {number} ({kind})" + (f", near “{shown}”" if shown else "")


def _continues(run: Sequence[_Json], block: _Json) -> bool:
    """Whether a block belongs to the list before it. A number of its own begins another list."""
    kind = str(block.get("type"))
    if kind != run[0].get("type"):
        return False
    number = mapped(block.get(kind)).get("list_start_index")
    first = mapped(run[0].get(kind)).get("list_start_index")
    start = first if isinstance(first, int) else 1
    return number is None or number in (first, start + len(run))


def _paint(block: _Json) -> Paint:
    return paint_of(mapped(block.get(str(block.get("type")))).get("color"))


def _file(body: _Json) -> tuple[str, bool]:
    """The address of a file, and whether it is Notion's own, which dies within the hour."""
    kind = str(body.get("type"))
    return str(mapped(body.get(kind)).get("url") or ""), kind == "file"


def _file_name(address: str) -> str:
    return seen(address.partition("?")[0].rpartition("/")[2])


def _flattened(blocks: Iterable[Any]) -> list[_Json]:
    """All blocks of a subtree, parents first, none with children. Not by recursion: it may be deep."""
    flat: list[_Json] = []
    waiting = [mapped(block) for block in blocks][::-1]
    while waiting:
        block = waiting.pop()
        flat.append({key: value for key, value in block.items() if key != "children"})
        waiting += [mapped(child) for child in listed(block.get("children"))][::-1]
    return flat
