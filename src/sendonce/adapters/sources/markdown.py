"""Letters from Markdown files with YAML front matter: CommonMark, tables, ~~strikethrough~~, ``- [ ]`` boxes.

Variables are swapped for plain words before YAML and Markdown see them, and put back afterwards: a
``{{ name | default: "x" }}`` may stand in a subject without quotes and inside the address of a link.
HTML in Markdown is shown, not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from sendonce.adapters.sources.front_matter import HiddenVariables, split_front_matter, with_plain_quotes
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.templates import Template
from sendonce.domain.mailouts.blocks import (
    Align,
    Block,
    Code,
    Divider,
    Draft,
    Heading,
    Image,
    Item,
    ItemList,
    Marks,
    Paragraph,
    Quote,
    RichText,
    Span,
    Table,
    button_of,
    seen,
    whole_variables,
)
from sendonce.domain.mailouts.links import Url, image_url, is_local, link_url
from sendonce.domain.mailouts.rendering import compose
from sendonce.errors import BadInput

_DEEPEST = 40
"""Levels of Markdown's own counting, two a list. The parser would drop silently what lies deeper."""
_BOX = re.compile(r"\[([ xX])\]\s+")
_ALIGN = re.compile(r"text-align:(left|center|right)")


def read_markdown(text: str) -> Letter:
    """A letter with its images where they are. Raises BadInput for what is missing or malformed."""
    return compose(markdown_draft(text)).letter


def markdown_draft(text: str, *, local: bool = False) -> Draft:
    """The letter as a tree. Raises BadInput, with the line, for what is missing or malformed.

    With ``local`` images may lie beside the file; whoever asks so has to host them.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = with_plain_quotes(text)
    Template.parse(text)  # complains about a stray {{ with its line in the file
    variables = HiddenVariables(text)
    matter = split_front_matter(variables.hidden)
    reader = _Reader(variables, matter.lines, local=local)
    blocks = reader.blocks(_parsed(matter.body).children)
    from_name = matter.from_name
    return Draft(
        subject=variables.restore(matter.fields["subject"]),
        blocks=tuple(blocks),
        preheader=variables.restore(matter.fields.get("preheader", "")),
        from_name=variables.restore(from_name) if from_name else None,
        reply_to=matter.fields.get("reply_to") or None,
        text_only=matter.text_only,
        language=matter.language,
        send_at=matter.fields.get("send_at", ""),
        warnings=tuple(reader.warnings),
    )


def _parsed(body: str) -> SyntaxTreeNode:
    markdown = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    tokens = markdown.enable(["table", "strikethrough"]).parse(body)
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        raise BadInput("The letter has lists or quotes nested too deep to be shown. Make it flatter.")
    return SyntaxTreeNode(tokens)


class _Reader:
    """Turns nodes of Markdown into blocks, and keeps the line it is at for what it has to say."""

    def __init__(self, variables: HiddenVariables, lines_above: int, *, local: bool) -> None:
        self._restore = variables.restore
        self._local = local
        self._lines_above = lines_above
        self._line = lines_above + 1
        self.warnings: list[str] = []

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> list[Block]:
        return [block for node in nodes for block in self._blocks_of(node)]

    def _blocks_of(self, node: SyntaxTreeNode) -> list[Block]:
        if node.map:
            self._line = self._lines_above + node.map[0] + 1
        match node.type:
            case "heading":
                return [Heading(int(node.tag[1]), self._text(node.children))]
            case "bullet_list" | "ordered_list":
                return [self._list(node)]
            case "blockquote":
                return [Quote(tuple(self.blocks(node.children)))]
            case "hr":
                return [Divider()]
            case "fence" | "code_block":
                return [Code(seen(self._restore(node.content)).rstrip("\n"))]
            case "table":
                return [self._table(node)]
            case _:
                return self._paragraph(node)

    def _list(self, node: SyntaxTreeNode) -> ItemList:
        items = [tuple(self.blocks(item.children)) for item in node.children]
        if node.type == "ordered_list":
            return ItemList(Marks.NUMBERS, tuple(map(Item, items)), int(node.attrs.get("start", 1)))
        boxes = [_box(blocks) for blocks in items]
        ticked = [box for box in boxes if box]
        if len(ticked) == len(items):
            return ItemList(Marks.BOXES, tuple(ticked))
        return ItemList(Marks.BULLETS, tuple(map(Item, items)))

    def _table(self, node: SyntaxTreeNode) -> Table:
        rows = [row for part in node.children for row in part.children]
        aligns = [_ALIGN.search(str(cell.attrs.get("style", ""))) for cell in rows[0].children]
        return Table(
            rows=tuple(tuple(self._text(cell.children) for cell in row.children) for row in rows),
            header_row=True,
            aligns=tuple(Align(align[1]) if align else Align.LEFT for align in aligns),
        )

    def _paragraph(self, node: SyntaxTreeNode) -> list[Block]:
        """The words of a paragraph, and its images as blocks of their own."""
        blocks: list[Block] = []
        words: list[Span] = []
        for part in self._inline(node.children, Span("")):
            if isinstance(part, Span):
                words.append(part)
            else:
                blocks += [*_worded(words), part]
                words = []
        return [*blocks, *_worded(words)]

    def _text(self, nodes: Sequence[SyntaxTreeNode]) -> RichText:
        """Words alone: an image among them is its description."""
        parts = self._inline(nodes, Span(""))
        return whole_variables(part if isinstance(part, Span) else Span(part.alt) for part in parts)

    def _inline(self, nodes: Sequence[SyntaxTreeNode], style: Span) -> list[Span | Image]:
        return [part for node in nodes for part in self._inline_of(node, style)]

    def _inline_of(self, node: SyntaxTreeNode, style: Span) -> list[Span | Image]:
        match node.type:
            case "text":
                return [replace(style, text=self._restore(node.content))]
            case "code_inline":
                return [replace(style, text=self._restore(node.content), code=True)]
            case "softbreak" | "hardbreak":
                self._line += 1
                return [replace(style, text=" " if node.type == "softbreak" else "\n")]
            case "image":
                return self._image(node, style)
            case "strong":
                style = replace(style, bold=True)
            case "em":
                style = replace(style, italic=True)
            case "s":
                style = replace(style, strike=True)
            case "link":
                style = replace(style, link=self._address(str(node.attrs["href"])))
        return self._inline(node.children, style)

    def _image(self, node: SyntaxTreeNode, style: Span) -> list[Span | Image]:
        source = self._restore(str(node.attrs["src"]))
        alt = seen(self._restore(node.content))
        if self._local and is_local(source):
            return [Image(Url(source), alt, link=style.link, expires=True)]
        url = self._checked(image_url, source)
        if url is None:
            self._warn(f"the image {source!r} was left out: an image's address begins with https://.")
            return [replace(style, text=alt)]
        return [Image(url, alt, link=style.link)]

    def _address(self, href: str) -> Url | None:
        source = self._restore(href)
        url = self._checked(link_url, source)
        if url is None:
            self._warn(f"the link to {source!r} was left out: write it from https:// or mailto: on.")
        return url

    def _checked(self, check: Callable[[str], Url | None], source: str) -> Url | None:
        try:
            return check(source)
        except BadInput as exc:
            raise BadInput(f"Line {self._line}: {exc}") from exc

    def _warn(self, what: str) -> None:
        self.warnings.append(f"Line {self._line}: {what}")


def _worded(words: list[Span]) -> list[Block]:
    text = whole_variables(words)
    if not any(span.text.strip() for span in text):
        return []
    return [button_of(text) or Paragraph(text)]


def _box(blocks: tuple[Block, ...]) -> Item | None:
    """The item of a list of boxes that begins with ``[ ]`` or ``[x]``."""
    match blocks:
        case (Paragraph((first, *others)), *rest) if mark := _BOX.match(first.text):
            text = whole_variables([replace(first, text=first.text[mark.end() :]), *others])
            return Item((Paragraph(text), *rest), checked=mark[1] != " ")
        case _:
            return None
