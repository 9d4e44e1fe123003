"""Letters from HTML files, which may come from anywhere.

Nothing of the file's markup reaches a reader: its words, links and images become blocks, and the
letter's HTML is our own. What has no block is left out, and the warnings say so.

Subject and preheader come from front matter as in Markdown, or from ``<title>`` and
``<meta name="description">``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from sendonce.adapters.sources.front_matter import (
    FrontMatter,
    HiddenVariables,
    has_front_matter,
    split_front_matter,
    with_plain_quotes,
)
from sendonce.adapters.sources.html_tree import Node, parse_html
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.templates import Template
from sendonce.domain.mailouts.blocks import (
    MAX_DEPTH,
    Block,
    Button,
    Code,
    Divider,
    Draft,
    Heading,
    Image,
    Indent,
    Item,
    ItemList,
    Marks,
    Paragraph,
    Quote,
    RichText,
    Span,
    Table,
    Toggle,
    button_of,
    plain,
    seen,
    whole_variables,
)
from sendonce.domain.mailouts.links import Url, image_url, link_url
from sendonce.domain.mailouts.rendering import compose
from sendonce.errors import BadInput

_MOST_WARNINGS = 30
_SPACE = re.compile(r"[ \t\r\n\f]+")
_DROPPED = {"applet", "audio", "button", "canvas", "dialog", "embed", "form", "frame", "frameset", "iframe"}
_DROPPED |= {"input", "math", "noembed", "noframes", "noscript", "object", "option", "param", "script"}
_DROPPED |= {"select", "svg", "template", "textarea", "video", "xmp"}
_SILENT = {"head", "title", "meta", "link", "style", "base"}
_PASSED = {"html", "body", "div", "section", "article", "main", "header", "footer", "nav", "aside", "center"}
_PASSED |= {"figure", "figcaption", "address", "p", "tbody", "thead", "tfoot", "tr", "td", "th", "caption"}
_PASSED |= {"hgroup", "dl", "summary", "fieldset", "legend", "li"}
_BOLD, _ITALIC = {"b", "strong"}, {"i", "em"}
_UNDERLINE, _STRIKE, _CODE = {"u", "ins"}, {"s", "del", "strike"}, {"code", "kbd", "samp", "tt"}
_INLINE = _BOLD | _ITALIC | _UNDERLINE | _STRIKE | _CODE
_INLINE |= {"a", "abbr", "acronym", "bdi", "bdo", "big", "cite", "data", "dfn", "font", "label", "mark"}
_INLINE |= {"nobr", "picture", "q", "small", "source", "span", "sub", "sup", "time", "var", "wbr"}
_LOOKS = {"bgcolor", "background", "color", "face"}
_KEPT_RULES = {"font-weight", "font-style", "text-decoration", "display", "visibility"}
_MARKS = {"a": Marks.LETTERS, "A": Marks.LETTERS, "i": Marks.ROMAN, "I": Marks.ROMAN}


def read_html(text: str) -> Letter:
    """A letter with its images where they are. Raises BadInput for what is missing or malformed."""
    return compose(html_draft(text)).letter


def html_draft(text: str) -> Draft:
    """The letter as a tree. Raises BadInput, with the line, for what is missing or malformed."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    # The quotes of a default would end the attribute it stands in.
    variables = HiddenVariables(with_plain_quotes(text))
    matter = FrontMatter({}, variables.hidden, 0)
    if has_front_matter(matter.body):
        matter = split_front_matter(matter.body)
    fields = {key: variables.restore(value) for key, value in matter.fields.items()}
    root = _restored(parse_html(matter.body), variables)
    subject = fields.get("subject") or _title(root)
    if not subject:
        raise BadInput("The file has no <title>, which is the letter's subject. Add <title>Our news</title>.")
    reader = _Reader(matter.lines)
    blocks = reader.blocks(root, Span(""), 0)
    return Draft(
        subject=subject,
        blocks=blocks,
        preheader=fields.get("preheader") or _description(root),
        from_name=fields.get("from_name") or fields.get("from") or None,
        reply_to=fields.get("reply_to") or None,
        text_only=matter.text_only,
        language=matter.language,
        send_at=fields.get("send_at", ""),
        warnings=reader.warnings(),
    )


def _restored(node: Node, variables: HiddenVariables) -> Node:
    node.attributes = {name: variables.restore(value) for name, value in node.attributes.items()}
    node.children = [
        variables.restore(child) if isinstance(child, str) else _restored(child, variables)
        for child in node.children
    ]
    return node


def _title(root: Node) -> str:
    titles = [" ".join(seen(title.text()).split()) for title in root.find_all("title")]
    return next(filter(None, titles), "")


def _description(root: Node) -> str:
    for meta in root.find_all("meta"):
        if meta.attributes.get("name", "").lower() == "description":
            return " ".join(seen(meta.attributes.get("content", "")).split())
    return ""


class _Flow:
    """Collects blocks; words between two of them become a paragraph."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._words: list[Span] = []

    def say(self, span: Span) -> None:
        self._words.append(span)

    def add(self, blocks: Iterable[Block]) -> None:
        self.flush()
        self.blocks += blocks

    def flush(self) -> None:
        text = whole_variables(_collapsed(self._words))
        self._words = []
        if plain(text).strip():
            Template.parse(plain(text), f"Near “{plain(text)[:40]}”")
            self.blocks.append(button_of(text) or Paragraph(text))


class _Reader:
    def __init__(self, lines_above: int) -> None:
        self._lines_above = lines_above
        self._said: Counter[str] = Counter()
        self._first_line: dict[str, int] = {}

    def warnings(self) -> tuple[str, ...]:
        """Each once, with the line where it was first met."""
        written = []
        for what, times in list(self._said.items())[:_MOST_WARNINGS]:
            again = f" ({times} times)" if times > 1 else ""
            written.append(f"Line {self._first_line[what]}: {what}{again}")
        more = len(self._said) - _MOST_WARNINGS
        return tuple([*written, f"And {more} more."] if more > 0 else written)

    def blocks(self, node: Node, style: Span, depth: int) -> tuple[Block, ...]:
        flow = _Flow()
        self._children(flow, node, style, depth)
        flow.flush()
        return tuple(flow.blocks)

    def _children(self, flow: _Flow, node: Node, style: Span, depth: int) -> None:
        for child in node.children:
            if isinstance(child, str):
                flow.say(replace(style, text=_SPACE.sub(" ", child)))
            else:
                self._element(flow, child, style, depth)

    def _element(self, flow: _Flow, node: Node, style: Span, depth: int) -> None:
        tag = node.tag
        if tag == "style" or _LOOKS & node.attributes.keys() or _styled(node):
            self._warn(node, "the file's own styling (colours, fonts, widths) is not kept.")
        if tag in _SILENT:
            return
        if tag in _DROPPED or _is_hidden(node):
            self._warn(node, f"<{tag}> was left out with all that is in it.")
        elif tag == "br":
            flow.say(replace(style, text="\n"))
        elif tag in _INLINE:
            self._children(flow, node, self._restyled(node, style), depth)
        elif tag in _PASSED:
            flow.flush()
            self._children(flow, node, self._restyled(node, style), depth)
            flow.flush()
        elif tag in _NESTING:
            flow.add(_NESTING[tag](self, node, style, depth))
        elif tag in {"img", "hr", "pre"}:
            flow.add(self._leaf(node, style))
        else:
            self._warn(node, f"<{tag}> is not known; its words were kept.")
            self._children(flow, node, style, depth)

    def _restyled(self, node: Node, style: Span) -> Span:
        tag, css = node.tag, node.attributes.get("style", "").lower().replace(" ", "")
        link = style.link
        if tag == "a" and "href" in node.attributes:
            link = self._address(node, node.attributes["href"])
        return replace(
            style,
            bold=style.bold or tag in _BOLD or bool(re.search(r"font-weight:(bold|[6-9]00)", css)),
            italic=style.italic or tag in _ITALIC or "font-style:italic" in css,
            underline=style.underline or tag in _UNDERLINE,
            strike=style.strike or tag in _STRIKE or "line-through" in css,
            code=style.code or tag in _CODE,
            link=link,
        )

    # --- blocks ---------------------------------------------------------------------------------

    def _heading(self, node: Node, style: Span, depth: int) -> list[Block]:
        level = int(node.tag[1])
        inner = self.blocks(node, style, depth)
        return [Heading(level, block.text) if isinstance(block, Paragraph) else block for block in inner]

    def _quote(self, node: Node, style: Span, depth: int) -> list[Block]:
        inner = self.blocks(node, style, depth + 1)
        return [Quote(inner)] if inner and depth < MAX_DEPTH else list(inner)

    def _list(self, node: Node, style: Span, depth: int) -> list[Block]:
        items: list[tuple[Block, ...]] = []
        for child in node.children:
            loose = Node("li", {}, node.line, [child])
            item = child if isinstance(child, Node) and child.tag == "li" else loose
            items += filter(None, [self.blocks(item, style, depth + 1)])
        if depth >= MAX_DEPTH:
            return [block for item in items for block in item]
        if not items:
            return []
        if node.tag != "ol":
            return [ItemList(Marks.BULLETS, tuple(map(Item, items)))]
        start = node.attributes.get("start", "")
        number = int(start) if re.fullmatch(r"\d{1,4}", start) else 1
        marks = _MARKS.get(node.attributes.get("type", ""), Marks.NUMBERS)
        return [ItemList(marks, tuple(map(Item, items)), number)]

    def _details(self, node: Node, style: Span, depth: int) -> list[Block]:
        summaries: list[Node | str] = [c for c in node.elements() if c.tag == "summary"]
        others = [c for c in node.children if isinstance(c, str) or c.tag != "summary"]
        rest = Node("div", {}, node.line, others)
        title = self._words(Node("div", {}, node.line, summaries), style)
        inner = self.blocks(rest, style, depth + 1)
        return [Toggle(title, inner)] if title and depth < MAX_DEPTH else list(inner)

    def _term(self, node: Node, style: Span, depth: int) -> list[Block]:
        return list(self.blocks(node, replace(style, bold=True), depth))

    def _definition(self, node: Node, style: Span, depth: int) -> list[Block]:
        inner = self.blocks(node, style, depth + 1)
        return [Indent(inner)] if inner and depth < MAX_DEPTH else list(inner)

    def _leaf(self, node: Node, style: Span) -> list[Block]:
        match node.tag:
            case "hr":
                return [Divider()]
            case "pre":
                return [Code(seen(node.text()).strip("\n"))]
            case _:
                return self._image(node, style)

    def _image(self, node: Node, style: Span) -> list[Block]:
        source = node.attributes.get("src", "")
        alt = " ".join(seen(node.attributes.get("alt", "")).split())
        width = node.attributes.get("width", "")
        if width in {"0", "1"} or node.attributes.get("height") in {"0", "1"}:
            self._warn(node, "an image of one pixel was left out: opens are not tracked.")
            return []
        url = self._checked(node, image_url, source)
        if url is None:
            self._warn(node, f"the image {source[:80]!r} was left out: its address must begin with https://.")
            return [Paragraph((replace(style, text=alt),))] if alt else []
        pixels = int(width) if re.fullmatch(r"[1-9]\d{0,3}", width) else None
        return [Image(url, alt, link=style.link, width=pixels)]

    def _table(self, node: Node, style: Span, depth: int) -> list[Block]:
        """A table of data if it looks like one, else a layout, whose cells are read one after another."""
        rows = [[cell for cell in row.elements() if cell.tag in {"td", "th"}] for row in node.find_all("tr")]
        rows = [row for row in rows if row]
        if not _is_data(node, rows):
            return list(self.blocks(Node("div", {}, node.line, node.children), style, depth))
        heads = [[cell.tag == "th" for cell in row] for row in rows]
        return [
            Table(
                rows=tuple(tuple(self._words(cell, style) for cell in row) for row in rows),
                header_row=all(heads[0]),
                header_column=len(rows) > 1 and all(row[0] for row in heads[1:]),
            )
        ]

    def _words(self, node: Node, style: Span) -> RichText:
        """What a cell or a title says, its blocks on lines of their own."""
        spans: list[Span] = []
        for block in self.blocks(node, style, MAX_DEPTH):
            if spans:
                spans.append(replace(spans[-1], text="\n", link=None))
            match block:
                case Paragraph(text) | Heading(_, text):
                    spans += text
                case Button(words, url):
                    spans.append(Span(words, bold=True, link=url))
                case Image(alt=alt) | Code(text=alt):
                    spans.append(Span(alt))
        return whole_variables(spans)

    # --- addresses ------------------------------------------------------------------------------

    def _address(self, node: Node, href: str) -> Url | None:
        url = self._checked(node, link_url, href)
        if url is None:
            self._warn(node, f"the link to {href[:80]!r} was left out: write it from https:// or mailto: on.")
        return url

    def _checked(self, node: Node, check: Callable[[str], Url | None], source: str) -> Url | None:
        try:
            return check(source)
        except BadInput as exc:
            raise BadInput(f"Line {node.line + self._lines_above}: {exc}") from exc

    def _warn(self, node: Node, what: str) -> None:
        self._said[what] += 1
        self._first_line.setdefault(what, node.line + self._lines_above)


_Handler = Callable[[_Reader, Node, Span, int], list[Block]]
_NESTING: dict[str, _Handler] = {
    **{f"h{level}": _Reader._heading for level in range(1, 7)},
    "blockquote": _Reader._quote,
    "ul": _Reader._list,
    "ol": _Reader._list,
    "menu": _Reader._list,
    "details": _Reader._details,
    "dt": _Reader._term,
    "dd": _Reader._definition,
    "table": _Reader._table,
}


def _styled(node: Node) -> bool:
    """Whether its style says more than what is kept of it: bold, italic, struck out, hidden."""
    rules = (rule.partition(":") for rule in node.attributes.get("style", "").lower().split(";"))
    return any(value.strip() and name.strip() not in _KEPT_RULES for name, _, value in rules)


def _is_hidden(node: Node) -> bool:
    style = node.attributes.get("style", "").lower().replace(" ", "")
    return "hidden" in node.attributes or "display:none" in style or "visibility:hidden" in style


def _is_data(table: Node, rows: list[list[Node]]) -> bool:
    """Newsletters are built of tables; one with data has headings, or a grid of plain cells."""
    if table.attributes.get("role", "").lower() in {"presentation", "none"} or not rows:
        return False
    if table.find_all("table", "img", "ul", "ol", "h1", "h2", "h3", "blockquote", "hr"):
        return False
    if table.find_all("th"):
        return True
    return len(rows) > 1 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1


def _collapsed(words: list[Span]) -> list[Span]:
    """Spaces as HTML counts them: one between words, none at the ends of a line."""
    spans: list[Span] = []
    before = "\n"
    for span in words:
        text = span.text
        if before in " \n":
            text = text.lstrip(" ")
        if text.startswith("\n") and spans:
            spans[-1] = replace(spans[-1], text=spans[-1].text.rstrip(" "))
        if text:
            spans.append(replace(span, text=text))
            before = text[-1]
    while spans and not spans[-1].text.rstrip(" \n"):
        spans.pop()
    while spans and not spans[0].text.lstrip(" \n"):
        spans.pop(0)
    if spans:
        spans[-1] = replace(spans[-1], text=spans[-1].text.rstrip(" \n"))
    return spans
