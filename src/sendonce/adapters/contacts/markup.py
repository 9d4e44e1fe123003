"""A page's markup made ready: what a reader sees as text, scripts and styles apart, hostile shapes made flat.

Parsers of HTML take quadratic time for elements that are nested without end, for endless attributes, and for
formatting that is never closed. The standard demands it of them, so such pages are cut to size before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from sendonce.adapters.contacts.nodes import outermost, remove_hidden
from sendonce.domain.prospecting.written_addresses import words_for_signs

MAX_PAGE = 2 << 20
# Below so many tags no shape is expensive.
_FEW_TAGS = 2000
# Blink nests no deeper than this, either.
_MAX_DEPTH = 512
_MAX_FORMATTING = 64
_SUSPICIOUS = 1500
_CHUNK = 8192
_LONG_RUN = 4000
BETWEEN = "\x1e"
# An @ that touches the end of an element, or a word beside it that may go on beyond one.
_JOINT_BEFORE = re.compile(r"(?:[\w.+-]\x1e+[\w.+-]*|\x1e)\Z", re.ASCII)
_JOINT_BEHIND = re.compile(r"\x1e|[\w.-]{1,250}\x1e+[\w.-]", re.ASCII)
_MAX_JOINTS = 1000
_NAME_OR_SIGN = re.compile(r"[a-zA-Z0-9@]")
_DOTS = (".", "dot", "точк", "тчк")

_RAW = re.compile(r"<s(cript|tyle)\b([^<>]*)>?")
_RAW_IN_CAPITALS = re.compile(r"</?(?:script|style)\b", re.IGNORECASE)
_FORMATTING = "b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
# Void elements and those that the next one of their kind ends.
_FLAT = "area|base|br|col|dd|dt|hr|img|input|li|link|meta|option|p|param|source|td|th|tr|tbody|thead|wbr|a"
_NESTING = re.compile(rf"<(/?)(?!(?:{_FLAT}|{_FORMATTING})\b)[a-z]".encode())
_FORMATS = re.compile(rf"<(/?)(?:{_FORMATTING})\b".encode())
_OPENED_FORMATS = re.compile(rf"<(?:{_FORMATTING})\b".encode())
_ALL_BUT_LINKS = re.compile(r"</?(?!(?:a|area|meta)\b)[a-zA-Z!][^<>]*>", re.IGNORECASE)
_STEP = {b"": 1, b"/": -1}
# A tag ends here, whichever quote it is in.
_END_OF_ANY_TAG = "\"'>"
_BETWEEN_ATTRIBUTES = re.compile(r"[\s/\"']")
_CUT_EACH = 800

_BLOCKS = (
    "address|article|aside|blockquote|br|button|dd|details|div|dl|dt|fieldset|figure|footer|form|h[1-6]|header|hr|"
    "label|li|main|nav|ol|option|p|pre|section|select|summary|table|tbody|td|textarea|th|title|tr|ul|a"
)
# A link with a part of an address in it is no block: <a>info</a>@firma.ru
_BLOCK = re.compile(rf"<(?=/?(?:{_BLOCKS}|{_BLOCKS.upper()})[\s>/])(?!/a>@)")

_HIDDEN_NODES = '[style*="display" i],[style*="visibility" i],[style*="font-size" i],[hidden]'
HIDES = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE)
# Blocks are shown like this until a script moves them in; a piece of a word is a decoy.
_VEILED_NODES = (
    '[style*="opacity" i],[style*="left" i],[style*="top" i],[style*="indent" i],'
    ".visually-hidden,.visuallyhidden,.sr-only,.screen-reader-text"
)
_VEILING = frozenset(
    b"opacity left top text-indent visually-hidden visuallyhidden sr-only screen-reader-text".split()
)
_VEILS = re.compile(
    r"opacity\s*:\s*0(?![.\d])|(?:left|top|text-indent)\s*:\s*-\d{3}|visually-?hidden|sr-only|screen-reader-text",
    re.IGNORECASE,
)
_REVERSES = re.compile(r"bidi-override|isolate-override", re.IGNORECASE)
_COMMENT = re.compile(r"/\*(?:.*?\*/|.*)", re.DOTALL)
_SIMPLE = re.compile(r"\s*((?:[a-z0-9]+)?[.#][\w-]+)\s*\Z", re.IGNORECASE)
_COMPOUND = r"(?:[a-z][a-z0-9]*(?:[.#][\w-]+)?|[.#][\w-]+)"
# One step to any descendant: to match two of them takes time by the square of a page's depth.
_NESTED = re.compile(
    rf"\s*({_COMPOUND}(?:\s*>\s*|\s+){_COMPOUND}(?:\s*>\s*{_COMPOUND}){{0,2}})\s*\Z", re.IGNORECASE
)
_GENERATED = re.compile(r"\s*((?:[a-z0-9]+)?[.#][\w-]+)::?(before|after)\s*\Z", re.IGNORECASE)
_CONTENT = re.compile(r"""content\s*:\s*(?:"([^"]{1,80})"|'([^']{1,80})')""", re.IGNORECASE)
_DRAWN_AT = re.compile(r"""content\s*:\s*["'][^"'{}]{0,60}(?:@|\\0*40)""", re.IGNORECASE)
_PART_OF_ADDRESS = re.compile(r"[A-Za-z0-9@._-]+")
_CSS_ESCAPE = re.compile(r"\\0*([0-9a-fA-F]{2,4})\s?")
_TELLING_STYLES = ("display", "visibility", "-override", "content")
_DRAWN_SIGNS = (
    'img[alt="@"],img[alt="at" i],img[alt="(at)" i],img[alt="[at]" i],img[alt="собака" i],'
    'i[class*="fa-at"],i[class*="icon-at"],span[class*="icon-at"]'
)
_NEAR = 300
_WORD = re.compile(rb"[\w-]+")
_MAX_AROUND = 100
_DRAWN_MARKS = (
    b'="@"',
    b"='@'",
    b"alt=@",
    b'="at"',
    b"='at'",
    b"lt=at",
    b"(at)",
    b"[at]",
    b"fa-at",
    b"on-at",
)
_INLINE_TAGS = "b bdo big code del em font i ins label mark nobr s small span strike strong sub sup u"
_INLINE = frozenset(_INLINE_TAGS.split())
_MAX_NODES = 500
_MAX_STYLED = 200
_MAX_STYLES = 200_000
# A rule looks at every element; one that it names takes as long as so many others. In all, about a second.
_MAX_STYLE_WORK = 50_000_000
_WORK_OF_STYLED = 2000
_WORK_OF_NESTED = 100


@dataclass(frozen=True, slots=True)
class Script:
    attributes: str
    body: str


class Seen(NamedTuple):
    """What a reader sees, and where in it words may stand for signs."""

    text: str
    words: list[int]


@dataclass(frozen=True)
class Page:
    tree: LexborHTMLParser
    html: str
    scripts: list[Script]
    styles: str
    markup: bytes

    def select(self, query: str, *marks: bytes) -> list[LexborNode]:
        """Nodes that the query names, at most a few hundred.

        A page without any of the ``marks``, in lower case, has none, and that is quicker to see. Python finds
        marks of up to five bytes three times as fast as longer ones.
        """
        return self.tree.css(query)[:_MAX_NODES] if any(mark in self.markup for mark in marks) else []

    @cached_property
    def seen(self) -> Seen:
        """Elements that stand apart are apart, by ``BETWEEN`` or a line's end; what is one word on the
        screen is one here.
        """
        text = _text_of(self.tree, BETWEEN)
        words = words_for_signs(text)
        if not _has_joints(text) and not any(_is_cut(text, at) for at in words):
            return Seen(text, words)
        # Tags stand inside of what may be an address: which of them part words matters. This is rare.
        tree = _parsed(_BLOCK.sub("\n<", self.html))
        _show_as_seen(Page(tree, self.html, [], self.styles, self.markup), closely=True)
        text = _text_of(tree, "")
        return Seen(text, words_for_signs(text))


def _has_joints(text: str) -> bool:
    at = -1
    for _ in range(_MAX_JOINTS):
        at = text.find("@", at + 1)
        if at < 0:
            return "＠" in text or "﹫" in text
        if _JOINT_BEFORE.search(text[max(0, at - 70) : at]) or _JOINT_BEHIND.match(text, at + 1):
            return True
    return True


def _is_cut(text: str, at: int) -> bool:
    """Whether an address in words goes on elsewhere: this element has no name before or no dot behind."""
    before = text[max(0, at - 40) : at].rpartition(BETWEEN)[2]
    behind = text[at : at + 60].partition(BETWEEN)[0].lower()
    return _NAME_OR_SIGN.search(before) is None or not any(dot in behind for dot in _DOTS)


def _text_of(tree: LexborHTMLParser, separator: str) -> str:
    return tree.body.text(separator=separator) if tree.body is not None else ""


def read_page(html: str) -> Page:
    html = html[:MAX_PAGE].replace("\x00", "")
    html, scripts, styles = _apart(html)
    html = _with_tags_that_end(html)
    markup = html.encode("ascii", "ignore").lower()
    if _is_too_deep(markup):
        html = _ALL_BUT_LINKS.sub("\n", html)
    page = Page(_parsed(html), html, scripts, styles, markup)
    _show_as_seen(page)
    return page


def _parsed(html: str) -> LexborHTMLParser:
    """The parser is quicker with bytes. Half of a surrogate pair is no character."""
    return LexborHTMLParser(html.encode("utf-8", "replace"))


def _apart(html: str) -> tuple[str, list[Script], str]:
    """The markup without its scripts and styles, and these."""
    if "<S" in html or "</S" in html:
        html = _RAW_IN_CAPITALS.sub(lambda tag: tag[0].lower(), html)
    kept: list[str] = []
    scripts: list[Script] = []
    styles: list[str] = []
    rest = 0
    while opened := _RAW.search(html, rest):
        kept.append(html[rest : opened.start()])
        closing = html.find(f"</s{opened[1]}", opened.end())
        body = html[opened.end() : closing if closing >= 0 else None]
        if opened[1] == "cript":
            scripts.append(Script(opened[2], body))
        else:
            styles.append(body)
        if closing < 0:
            break
        rest = closing + len("</script>") - (opened[1] == "tyle")
    else:
        kept.append(html[rest:])
    return "".join(kept), scripts, "\n".join(styles)


def _with_tags_that_end(html: str) -> str:
    if any(html.find(">", start, start + _LONG_RUN) < 0 for start in range(0, len(html), _LONG_RUN)):
        html = ">".join(_cut(run) if len(run) > _LONG_RUN else run for run in html.split(">"))
    return html


def _is_too_deep(markup: bytes) -> bool:
    """``markup`` in lower case. Few tags cannot be expensive, and rough counts clear most other pages."""
    if markup.count(b"<") < _FEW_TAGS:
        return False
    if (
        len(_OPENED_FORMATS.findall(markup)) > _MAX_FORMATTING
        and _deepest(_FORMATS, markup) > _MAX_FORMATTING
    ):
        return True
    return _rough_depth(markup) > _SUSPICIOUS and _deepest(_NESTING, markup) > _MAX_DEPTH


def _rough_depth(markup: bytes) -> int:
    """Tags that opened less those that closed, now and then. Void elements count as never closed."""
    chunks = (markup[start : start + _CHUNK] for start in range(0, len(markup), _CHUNK))
    return max(accumulate(chunk.count(b"<") - 2 * chunk.count(b"</") for chunk in chunks))


def _cut(run: str) -> str:
    """End whatever tag this is every so often: no tag has hundreds of attributes."""
    pieces: list[str] = []
    start = 0
    while found := _BETWEEN_ATTRIBUTES.search(run, start + _CUT_EACH):
        pieces.append(run[start : found.end()])
        start = found.end()
    return _END_OF_ANY_TAG.join([*pieces, run[start:]])


def _deepest(tags: re.Pattern[bytes], markup: bytes) -> int:
    return max(accumulate(map(_STEP.__getitem__, tags.findall(markup))), default=0)


def _show_as_seen(page: Page, *, closely: bool = False) -> None:
    """Take out what no reader sees, turn what is written backwards, put in what styles and icons write.

    ``closely``: tags stand inside of words, and any of them may hold a decoy.
    """
    styled = page.select(_HIDDEN_NODES, b"none", b"idden", b"ize:0", b"ze: 0")
    remove_hidden([node for node in styled if _is_hidden(node)], _INLINE)
    near = _words_near_signs(page.markup) if closely else frozenset()
    if not near.isdisjoint(_VEILING):
        _remove_veiled(page.tree)
    styled = page.select('[style*="-override" i],bdo[dir="rtl" i]', b"-over", b"<bdo")
    for node in outermost(node for node in styled if _is_turned(node)):
        _turn(node)
    if any(mark in page.markup for mark in _DRAWN_MARKS) or "обак" in page.html:
        for node in page.tree.css(_DRAWN_SIGNS)[:_MAX_NODES]:
            node.replace_with("@")
    if page.tree.body is not None and any(word in page.styles for word in _TELLING_STYLES):
        _apply_styles(page.tree.body, page.styles, page.markup.count(b"<"), near)


def _words_near_signs(markup: bytes) -> frozenset[bytes]:
    """Of places where a decoy in an address would be: few selectors name anything there."""
    signs = islice(re.finditer(b"@", markup), _MAX_AROUND)
    places = (markup[max(0, sign.start() - _NEAR) : sign.end() + _NEAR] for sign in signs)
    return frozenset(_WORD.findall(b"\n".join(places)))


def _is_hidden(node: LexborNode) -> bool:
    return "hidden" in node.attributes or HIDES.search(node.attributes.get("style") or "") is not None


def _is_turned(node: LexborNode) -> bool:
    return node.tag == "bdo" or _REVERSES.search(node.attributes.get("style") or "") is not None


def _remove_veiled(tree: LexborHTMLParser) -> None:
    for node in outermost(node for node in tree.css(_VEILED_NODES)[:_MAX_NODES] if _is_veiled(node)):
        if "@" not in node.text(separator=""):
            node.decompose()


def _is_veiled(node: LexborNode) -> bool:
    how = f"{node.attributes.get('style')} {node.attributes.get('class')}"
    return node.tag in _INLINE and _VEILS.search(how) is not None


def _turn(node: LexborNode) -> None:
    node.replace_with(node.text(separator="")[::-1])


def _apply_styles(body: LexborNode, styles: str, tags: int, near: frozenset[bytes]) -> None:
    left = _MAX_STYLE_WORK
    # Icons and dashes are drawn on every page, an @ on few.
    draws_signs = _DRAWN_AT.search(styles) is not None
    for rule in _COMMENT.sub("", styles[:_MAX_STYLES]).split("}"):
        selectors, _, rules = rule.rpartition("{")
        hides, reverses = HIDES.search(rules), _REVERSES.search(rules)
        content = _CONTENT.search(rules)
        if not (hides or reverses or content):
            continue
        for selector in selectors.rpartition("{")[2][-1000:].split(","):
            if content and draws_signs and (made := _GENERATED.match(selector)):
                styled = _generate(body, made[1], made[2].lower(), content[1] or content[2])
            elif (hides or reverses) and (simple := _SIMPLE.match(selector)):
                styled = _restyle(body, simple[1], hidden=bool(hides))
            elif (reverses or near) and (nested := _NESTED.match(selector)):
                if not reverses and not near.issuperset(_names_of_last(nested[1])):
                    continue
                left -= tags * _WORK_OF_NESTED
                styled = _restyle(body, nested[1], hidden=bool(hides)) if left >= 0 else 0
            else:
                continue
            left -= tags + styled * _WORK_OF_STYLED
            if left < 0:
                return


def _names_of_last(selector: str) -> list[bytes]:
    """``span`` and ``hide`` of ``.mail > span.hide``."""
    last = selector.lower().replace(">", " ").split()[-1]
    return _WORD.findall(last.encode("ascii", "ignore"))


def _generate(body: LexborNode, selector: str, place: str, content: str) -> int:
    """``.at::before { content: "@" }``; how many elements there are."""
    text = _CSS_ESCAPE.sub(lambda code: chr(int(code[1], 16)), content)
    if not _PART_OF_ADDRESS.fullmatch(text):
        return 0
    nodes = body.css(selector)[:_MAX_STYLED]
    for node in nodes:
        if place == "before":
            node.insert_before(text)
        else:
            node.insert_after(text)
    return len(nodes)


def _restyle(body: LexborNode, selector: str, *, hidden: bool) -> int:
    """By class, only pieces of a line: blocks that a style hides are opened by scripts. Tells how many."""
    nodes = body.css(selector)[:_MAX_STYLED]
    for node in outermost(node for node in nodes if not hidden or node.tag in _INLINE):
        if hidden:
            node.decompose()
        else:
            _turn(node)
    return len(nodes)
