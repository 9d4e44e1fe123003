"""Hostile HTML as a small tree, in time that grows with its length.

The standard library's ``html.parser`` is not used: half a megabyte of ``<a `` or ``<!--`` keeps it busy
for minutes. Depth and size are bounded here, so whoever walks the tree may do so by recursion.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape

from sendonce.errors import BadInput

LARGEST = 500_000
"""Characters. The letter itself must be a fifth of it: Gmail cuts at 102 KB."""
DEEPEST = 80

_MARK = re.compile(r"<(?:(!--)|([!?])|(/?)([A-Za-z][^\s/>]*))")
_ATTRIBUTE = re.compile(r"""[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?""")
_TAG_END = re.compile(r"[\s/]*>")

_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "wbr"}
# HTML §13.1.2.6: no markup is looked for in these before their own end tag.
_RAW = {"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript"}
_BLOCKS = {"address", "article", "aside", "blockquote", "center", "details", "div", "dl", "figure", "footer"}
_BLOCKS |= {"form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "menu", "nav", "ol", "p"}
_BLOCKS |= {"pre", "section", "table", "ul"}
_ROWS = {"tr", "tbody", "thead", "tfoot"}
_CELLS = {"td", "th"}
# HTML §13.1.2.4: an element of the left is closed by the start of one of the right, within its scope.
_CLOSED_BY = {
    "p": _BLOCKS | _ROWS | _CELLS | {"li", "dt", "dd"},
    "li": {"li"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "td": _CELLS | _ROWS,
    "th": _CELLS | _ROWS,
    "tr": _ROWS,
}
_SCOPES = {"table", "ul", "ol", "dl"}


@dataclass(slots=True)
class Node:
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Node | str] = field(default_factory=list)

    def elements(self) -> list[Node]:
        return [child for child in self.children if isinstance(child, Node)]

    def find_all(self, *tags: str) -> list[Node]:
        """The elements with these tags, at any depth, in the order of reading."""
        found = []
        for child in self.elements():
            found += [child] if child.tag in tags else []
            found += child.find_all(*tags)
        return found

    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)


def parse_html(text: str) -> Node:
    """The root, whose children are what the file holds. Raises BadInput for a file that is too large."""
    if len(text) > LARGEST:
        raise BadInput(f"The HTML has {len(text)} characters, more than any letter. The limit is {LARGEST}.")
    builder = _Builder()
    for token in _Tokens(text):
        if isinstance(token, str):
            builder.data(token)
        elif token.tag.startswith("/"):
            builder.end(token.tag[1:])
        else:
            builder.start(token)
    return builder.root


class _Tokens:
    """Text, start tags, and end tags as nodes with a slash before their name. Comments are passed over."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lower = text.lower()
        self._newlines = [match.start() for match in re.finditer("\n", text)]

    def __iter__(self) -> Iterator[Node | str]:
        position = 0
        while (mark := _MARK.search(self._text, position)) is not None:
            if mark.start() > position:
                yield unescape(self._text[position : mark.start()])
            if mark[4] is None:
                position = self._after_aside(mark)
                continue
            node, position = self._tag(mark)
            if node is None:
                return
            yield node
            if node.tag in _RAW:
                end = self._lower.find(f"</{node.tag}", position)
                end = len(self._text) if end < 0 else end
                yield unescape(self._text[position:end]) if node.tag == "title" else ""
                position = end
        if position < len(self._text):
            yield unescape(self._text[position:])

    def _after_aside(self, mark: re.Match[str]) -> int:
        """The end of a comment or declaration. One that is not closed goes to the end of the file."""
        closing, start = ("-->", mark.end() - 2) if mark[1] else (">", mark.end())
        end = self._text.find(closing, start)
        return len(self._text) if end < 0 else end + len(closing)

    def _tag(self, mark: re.Match[str]) -> tuple[Node | None, int]:
        """The tag and its end; None for one that the file ends in, which browsers drop too."""
        attributes: dict[str, str] = {}
        position = mark.end()
        while (end := _TAG_END.match(self._text, position)) is None:
            attribute = _ATTRIBUTE.match(self._text, position)
            if attribute is None:
                return None, len(self._text)
            value = next((one for one in attribute.groups()[1:] if one is not None), "")
            attributes.setdefault(attribute[1].lower(), unescape(value))  # of two the first counts
            position = attribute.end()
        line = bisect_left(self._newlines, mark.start()) + 1
        return Node(mark[3] + mark[4].lower(), attributes, line), end.end()


class _Builder:
    def __init__(self) -> None:
        self.root = Node("#root", {}, 1)
        self._open = [self.root]

    def start(self, node: Node) -> None:
        self._close_implied(node.tag)
        self._open[-1].children.append(node)
        if node.tag not in _VOID and len(self._open) < DEEPEST:
            self._open.append(node)

    def end(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            opened = self._open[depth].tag
            if opened == tag:
                del self._open[depth:]
                return
            if opened == "table":
                return  # a stray end tag in a cell does not close what is around the table

    def data(self, text: str) -> None:
        self._open[-1].children.append(text)

    def _close_implied(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            opened = self._open[depth].tag
            if tag in _CLOSED_BY.get(opened, ()):
                del self._open[depth:]
            elif opened in _SCOPES:
                return
