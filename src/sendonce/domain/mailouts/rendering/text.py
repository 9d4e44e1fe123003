"""The same letter for those who read without HTML."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from urllib.parse import unquote

from sendonce.domain.engine.templates import VARIABLE, rule_below, url_marked
from sendonce.domain.mailouts.blocks import (
    Block,
    Button,
    Callout,
    Code,
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
    Paragraph,
    Quote,
    RichText,
    Table,
    Toggle,
)
from sendonce.domain.mailouts.rendering.hosting import Hosting

_LONGEST_RULE = 60
_ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def text_document(blocks: Sequence[Block], hosting: Hosting) -> str:
    return TextBlocks(hosting).blocks(blocks) + "\n"


class TextBlocks:
    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting

    def blocks(self, blocks: Sequence[Block], separator: str = "\n\n") -> str:
        return separator.join(filter(None, map(self._block, blocks)))

    def _block(self, block: Block) -> str:
        match block:
            case Paragraph():
                return words_of(block.text)
            case Heading():
                return _heading(block)
            case ItemList():
                return "\n".join(self._item(block, number) for number in range(len(block.items)))
            case Quote():
                return _prefixed(self.blocks(block.blocks), "> ", "> ")
            case Callout():
                lead = f"{block.icon} " if block.icon else "  "
                return _prefixed(self.blocks(block.blocks), lead, "   " if block.icon else "  ")
            case Toggle():
                below = _prefixed(self.blocks(block.blocks), "  ", "  ")
                return f"▾ {words_of(block.title)}\n\n{below}".rstrip()
            case Indent():
                return _prefixed(self.blocks(block.blocks), "  ", "  ")
            case Columns():
                return "\n\n".join(filter(None, (self.blocks(column.blocks) for column in block.columns)))
            case Code():
                code = _prefixed(block.text.rstrip("\n"), "    ", "    ")
                return "\n\n".join(filter(None, [code, words_of(block.caption)]))
            case Table():
                return "\n".join(" | ".join(words_of(cell) for cell in row) for row in block.rows)
            case Divider():
                return "-" * 20
            case Equation():
                return block.expression
            case Button():
                return f"{block.text}: {block.url}"
            case Image() | LinkCard():
                return self._file(block)

    def _item(self, block: ItemList, number: int) -> str:
        item = block.items[number]
        mark = _mark(block, item, block.start + number) + " "
        return _prefixed(self.blocks(item.blocks, "\n"), mark, " " * len(mark))

    def _file(self, block: Image | LinkCard) -> str:
        place = self._hosting.place(block)
        caption = words_of(block.caption)
        if isinstance(block, LinkCard):
            title = block.title or caption
            lines = [f"{title}: {place.url}" if title else place.url] if place else []
            lines += [caption] if caption and block.title and place else []
            return "\n".join(lines)
        # The address of an image tells a reader nothing; its description does.
        words = caption or block.alt
        return f"{words} ({block.link})".lstrip() if block.link else words


def words_of(text: RichText) -> str:
    """Links as ``words (address)``, but for those whose words are the address."""
    written = []
    for link, spans in groupby(text, key=lambda span: span.link):
        words = "".join(span.text for span in spans)
        if link and words.strip() and not _is_address(words.strip(), link):
            trailing = words[len(words.rstrip()) :]
            words = f"{words.rstrip()} ({link}){trailing}"
        written.append(words)
    return "".join(written).strip("\n")


def _is_address(words: str, link: str) -> bool:
    shown = url_marked(words)
    bare = link.removeprefix("mailto:").removeprefix("tel:")
    return shown in (link, bare, unquote(link)) or f"{shown}/" == link


def _heading(block: Heading) -> str:
    title = words_of(block.text)
    rule = "=" if block.level == 1 else "-"
    longest = max(title.split("\n"), key=len)
    if not VARIABLE.search(longest):
        longest = longest[:_LONGEST_RULE]
    return f"{title}\n{rule_below(longest, rule)}" if title else ""


def _mark(block: ItemList, item: Item, number: int) -> str:
    match block.marks:
        case Marks.BULLETS:
            return "-"
        case Marks.BOXES:
            return "[x]" if item.checked else "[ ]"
        case Marks.LETTERS if 1 <= number <= 26:
            return f"{chr(ord('a') + number - 1)}."
        case Marks.ROMAN if 1 <= number < 40:
            return f"{_roman(number)}."
        case _:
            return f"{number}."


def _roman(number: int) -> str:
    written = ""
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        written += letters * count
    return written


def _prefixed(text: str, first: str, others: str) -> str:
    if not text:
        return ""
    head, *tail = text.split("\n")
    return "\n".join([f"{first}{head}".rstrip(), *(f"{others}{line}".rstrip() for line in tail)])
