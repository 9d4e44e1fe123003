"""The tree of blocks that a letter is, whatever it was written in.

    Notion page ─┐
    Markdown ────┼─► blocks ─► HTML and plain text (see ``rendering``)
    HTML ────────┘

All text in the tree is template source: ``{{ name }}`` may stand in it (see ``templates``). Addresses
are ``Url``, so nothing that was not checked can become a link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from sendonce.domain.engine.templates import VARIABLE
from sendonce.domain.mailouts.links import Url

MAX_DEPTH = 24
"""Deeper nesting is drawn at this depth: each level takes room from a column of 600 pixels."""


# Pasted text brings them along; nobody sees them, and the message builder refuses them.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class Colour(StrEnum):
    """Notion's names; each stands for a hue that reads on white and on black."""

    GRAY = "gray"
    BROWN = "brown"
    ORANGE = "orange"
    YELLOW = "yellow"
    GREEN = "green"
    BLUE = "blue"
    PURPLE = "purple"
    PINK = "pink"
    RED = "red"


@dataclass(frozen=True, slots=True)
class Paint:
    colour: Colour | None = None
    background: Colour | None = None


PLAIN = Paint()


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text in one style. A line break in it is a line break in the letter."""

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    code: bool = False
    link: Url | None = None
    paint: Paint = PLAIN


RichText = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: RichText
    paint: Paint = PLAIN


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: RichText
    paint: Paint = PLAIN


@dataclass(frozen=True, slots=True)
class Button:
    """A paragraph that is nothing but one bold link: see ``button_of``."""

    text: str
    url: Url


class Marks(StrEnum):
    """What stands before the items of a list."""

    BULLETS = "bullets"
    NUMBERS = "numbers"
    LETTERS = "letters"
    ROMAN = "roman"
    BOXES = "boxes"


@dataclass(frozen=True, slots=True)
class Item:
    """``checked`` is for lists of boxes. An item's text is the paragraph it begins with."""

    blocks: tuple[Block, ...]
    paint: Paint = PLAIN
    checked: bool = False


@dataclass(frozen=True, slots=True)
class ItemList:
    marks: Marks
    items: tuple[Item, ...]
    start: int = 1


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: tuple[Block, ...]
    paint: Paint = PLAIN


@dataclass(frozen=True, slots=True)
class Callout:
    """``icon`` is an emoji, or nothing."""

    blocks: tuple[Block, ...]
    icon: str = ""
    paint: Paint = PLAIN


@dataclass(frozen=True, slots=True)
class Toggle:
    """Always open: there is nothing to click on in a letter."""

    title: RichText
    blocks: tuple[Block, ...]
    paint: Paint = PLAIN


@dataclass(frozen=True, slots=True)
class Indent:
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Column:
    blocks: tuple[Block, ...]
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Columns:
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Code:
    text: str
    caption: RichText = ()


@dataclass(frozen=True, slots=True)
class Equation:
    expression: str


@dataclass(frozen=True, slots=True)
class Image:
    """``expires``: readers cannot use the address, so a copy has to be made: it is Notion's own and dies
    within the hour, or it is a file on the author's disk."""

    url: Url
    alt: str = ""
    caption: RichText = ()
    link: Url | None = None
    width: int | None = None
    expires: bool = False


@dataclass(frozen=True, slots=True)
class LinkCard:
    """A bookmark, a film, a file: what a letter can only point at."""

    url: Url
    title: str = ""
    caption: RichText = ()
    expires: bool = False


class Align(StrEnum):
    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Table:
    rows: tuple[tuple[RichText, ...], ...]
    header_row: bool = False
    header_column: bool = False
    aligns: tuple[Align, ...] = ()


@dataclass(frozen=True, slots=True)
class Divider:
    pass


Container = Quote | Callout | Toggle | Indent | Item | Column
Block = (
    Paragraph
    | Heading
    | Button
    | ItemList
    | Quote
    | Callout
    | Toggle
    | Indent
    | Columns
    | Code
    | Equation
    | Image
    | LinkCard
    | Table
    | Divider
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A letter as a source gives it. ``warnings`` tell its author what was left out, and where.

    ``send_at`` is a time as its author wrote it: which clock it is on, the source does not know.
    """

    subject: str
    blocks: tuple[Block, ...]
    preheader: str = ""
    from_name: str | None = None
    reply_to: str | None = None
    text_only: bool = False
    send_at: str = ""
    language: str | None = None
    warnings: tuple[str, ...] = ()


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Every block, parents first, in the order of reading."""
    for block in blocks:
        yield block
        match block:
            case Quote(inner) | Callout(inner) | Indent(inner) | Toggle(_, inner):
                yield from walk(inner)
            case ItemList(_, items):
                for item in items:
                    yield from walk(item.blocks)
            case Columns(columns):
                for column in columns:
                    yield from walk(column.blocks)


def files(blocks: Iterable[Block]) -> list[Image | LinkCard]:
    """What to copy before the letter is rendered: every image, and every file that expires."""
    return [
        block
        for block in walk(blocks)
        if isinstance(block, Image) or (isinstance(block, LinkCard) and block.expires)
    ]


def seen(text: str) -> str:
    """Text without control characters and halves of characters, with our line ends."""
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def plain(text: RichText) -> str:
    return "".join(span.text for span in text)


def button_of(text: RichText) -> Button | None:
    """The button that a paragraph is meant to be, since editors have none that reach us.

    The convention: one link, all of it bold, and nothing beside it.
    """
    words = [span for span in text if span.text.strip()]
    links = {span.link for span in words}
    if len(links) != 1 or not all(span.bold for span in words):
        return None
    [url] = links
    return Button(plain(text).strip(), url) if url else None


def whole_variables(text: Iterable[Span]) -> RichText:
    """The same text, where no variable is spread over two spans.

    Editors cut a stretch in two behind the writer's back, in the middle of ``{{ name }}`` as well. The
    variable then takes the style it begins with.
    """
    spans = _merged(text)
    starts = [0]
    for span in spans:
        starts.append(starts[-1] + len(span.text))
    whole = plain(spans)
    edges = [0, *_outside_variables(starts[1:-1], whole), len(whole)]
    pieces = zip(spans, edges, edges[1:], strict=False)
    return tuple(replace(span, text=whole[start:end]) for span, start, end in pieces if end > start)


def _outside_variables(cuts: list[int], whole: str) -> Iterator[int]:
    """The same rising cuts, those inside a variable moved behind it."""
    variables = VARIABLE.finditer(whole)
    match = next(variables, None)
    for cut in cuts:
        while match is not None and match.end() <= cut:
            match = next(variables, None)
        yield match.end() if match is not None and match.start() < cut else cut


def _merged(text: Iterable[Span]) -> RichText:
    """Neighbours in the same style as one span."""
    spans: list[Span] = []
    for span in (replace(span, text=seen(span.text)) for span in text):
        if spans and replace(spans[-1], text=span.text) == span:
            spans[-1] = replace(span, text=spans[-1].text + span.text)
        elif span.text:
            spans.append(span)
    return tuple(spans)
