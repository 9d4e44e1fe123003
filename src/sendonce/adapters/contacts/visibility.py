"""What a reader sees of a page: hidden decoys taken out, text that runs backwards turned, and what styles and
pictures draw put in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from sendonce.adapters.contacts.bait import is_bait
from sendonce.adapters.contacts.nodes import outermost, remove_hidden

_HIDDEN_NODES = '[style*="display" i],[style*="visibility" i],[style*="font-size" i],[hidden]'
HIDES = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE)
# Blocks are shown like this until a script moves them in; a piece of a word is a decoy.
_VEILED_NODES = (
    '[style*="opacity" i],[style*="width" i],[style*="height" i],[style*="left" i],[style*="top" i],'
    '[style*="indent" i],'
    ".visually-hidden,.visuallyhidden,.sr-only,.screen-reader-text"
)
_VEILING_STYLES = (b"opaci", b"t:0", b"t: 0", b"h:1p", b":-9", b": -9", b":-1", b": -1")
# hCard: «рабочий» before an address without a blank.
_TYPES_IN_CARDS = ".vcard .email .type,.vcard .tel .type"
_VEILING = frozenset(
    (
        *(b"opacity width height left top text-indent".split()),
        *(b"visually-hidden visuallyhidden sr-only screen-reader-text".split()),
    )
)
_VEILS = re.compile(
    r"(?<![\w-])(?:width|height)\s*:\s*[01](?:px)?\s*(?:;|!|\Z)|opacity\s*:\s*0(?![.\d])|(?:left|top|text-indent)\s*:\s*-\d{3}|visually-?hidden|sr-only|screen-reader-text",
    re.IGNORECASE,
)
_TURNED_NODES = '[style*="-override" i],bdo[dir="rtl" i]'
_REVERSES = re.compile(r"bidi-override|isolate-override", re.IGNORECASE)
_COMMENT = re.compile(r"/\*(?:.*?\*/|.*)", re.DOTALL)
_SIMPLE = re.compile(r"\s*((?:[a-z0-9]+)?[.#][\w-]+)\s*\Z", re.IGNORECASE)
_COMPOUND = r"(?:[a-z][a-z0-9]*(?:[.#][\w-]+)?|[.#][\w-]+)"
# One step to any descendant: to match two of them takes time by the square of a page's depth.
_NESTED = re.compile(
    rf"\s*({_COMPOUND}(?:\s*>\s*|\s+){_COMPOUND}(?:\s*>\s*{_COMPOUND}){{0,2}})\s*\Z", re.IGNORECASE
)
_GENERATED = re.compile(
    rf"\s*({_COMPOUND}(?:(?:\s*>\s*|\s+){_COMPOUND}){{0,1}})::?(before|after)\s*\Z", re.IGNORECASE
)
_CONTENT = re.compile(r"""content\s*:\s*(?:"([^"]{1,80})"|'([^']{1,80})')""", re.IGNORECASE)
_DRAWN_AT = re.compile(r"""content\s*:\s*["'][^"'{}]{0,60}(?:@|\\0*40)""", re.IGNORECASE)
_PART_OF_ADDRESS = re.compile(r"[A-Za-z0-9@._-]+")
_CSS_ESCAPE = re.compile(r"\\0*([0-9a-fA-F]{2,4})\s?")
_HIDING_STYLES = ("display", "visibility", "font-size")
_TELLING_STYLES = ("display", "visibility", "-override", "content")
_DRAWN_SIGNS = (
    'img[alt="@"],img[alt="at" i],img[alt="(at)" i],img[alt="[at]" i],img[alt="собака" i],'
    'img[alt="собачка" i],img[title="@"],img[src*="/at."],img[src*="sobak"],'
    'i[class*="fa-at"],i[class*="icon-at"],span[class*="fa-at"],span[class*="icon-at"]'
)
_WORD = re.compile(rb"[\w-]+")
_INLINE_TAGS = "b bdo big code del em font i ins label mark nobr s small span strike strong sub sup u"
_INLINE = frozenset(_INLINE_TAGS.split())
_MAX_NODES = 500
_MAX_STYLED = 200
_MAX_STYLES = 200_000
# A rule looks at every element; one that it names takes as long as so many others. In all, about a second.
_MAX_STYLE_WORK = 50_000_000
_WORK_OF_STYLED = 2000
_WORK_OF_NESTED = 100
_WORK_OF_BLOCK = 100_000


def show_as_seen(tree: LexborHTMLParser, styles: str, lowered: bytes) -> None:
    """Take out what no reader sees, turn what is written backwards, put in what styles and icons write."""
    styled = b"yle=" in lowered
    if styled or b"idden" in lowered:
        nodes = tree.css(_HIDDEN_NODES)[:_MAX_NODES]
        remove_hidden([node for node in nodes if _is_hidden(node)], _INLINE)
    if styled and any(mark in lowered for mark in _VEILING_STYLES):
        _remove_bait(tree)
    if b"vcard" in lowered:
        for node in tree.css(_TYPES_IN_CARDS)[:_MAX_NODES]:
            node.decompose()
    if (styled and b"-over" in lowered) or b"<bdo" in lowered:
        for node in outermost(filter(_is_turned, tree.css(_TURNED_NODES)[:_MAX_NODES])):
            _turn(node)
    if b"fa-at" in lowered or b"on-at" in lowered or _has_picture_in_word(lowered):
        for node in tree.css(_DRAWN_SIGNS)[:_MAX_NODES]:
            node.replace_with("@")
    if tree.body is not None and any(word in styles for word in _TELLING_STYLES):
        _Styling(tree.body, lowered.count(b"<")).apply(styles)


def remove_decoys(tree: LexborHTMLParser, styles: str, lowered: bytes, near: frozenset[bytes]) -> None:
    """Take out what no reader sees inside of words. ``near`` are the words of the markup near each @."""
    if not near.isdisjoint(_VEILING):
        _remove_veiled(tree)
    if tree.body is not None and any(word in styles for word in _HIDING_STYLES):
        _Styling(tree.body, lowered.count(b"<")).remove_decoys(styles, near)


def _has_picture_in_word(lowered: bytes) -> bool:
    """``info<img alt="@">firma.ru``: a picture behind a letter or a digit."""
    *before, _ = lowered.split(b"<img")
    return any(text[-2:].rstrip()[-1:].isalnum() for text in before)


def _is_hidden(node: LexborNode) -> bool:
    return "hidden" in node.attributes or HIDES.search(node.attributes.get("style") or "") is not None


def _is_turned(node: LexborNode) -> bool:
    return node.tag == "bdo" or _REVERSES.search(node.attributes.get("style") or "") is not None


def _remove_bait(tree: LexborHTMLParser) -> None:
    """Blocks without a size, transparent, or beside the screen, with nothing but an address in them."""
    nodes = tree.css(_VEILED_NODES)[:_MAX_NODES]
    veiled = outermost(node for node in nodes if _VEILS.search(node.attributes.get("style") or ""))
    for node in filter(is_bait, veiled):
        node.decompose()


def _remove_veiled(tree: LexborHTMLParser) -> None:
    for node in outermost(node for node in tree.css(_VEILED_NODES)[:_MAX_NODES] if _is_veiled(node)):
        if "@" not in node.text(separator=""):
            node.decompose()


def _is_veiled(node: LexborNode) -> bool:
    how = f"{node.attributes.get('style')} {node.attributes.get('class')}"
    return node.tag in _INLINE and _VEILS.search(how) is not None


def _turn(node: LexborNode) -> None:
    node.replace_with(node.text(separator="")[::-1])


class _Rule(NamedTuple):
    """A rule of a style sheet that changes what is read."""

    selectors: list[str]
    hides: bool
    turns: bool
    content: str
    on_some_screens: bool


def _rules_of(styles: str) -> Iterator[_Rule]:
    inside = False
    for rule in _COMMENT.sub("", styles[:_MAX_STYLES]).split("}"):
        selectors, _, declarations = rule.rpartition("{")
        # @media (…) { .a { … } .b { … } }: what is in it begins with a second brace, and ends with one more.
        inside = bool(rule.strip()) and (inside or "{" in selectors)
        hides, turns = HIDES.search(declarations), _REVERSES.search(declarations)
        content = _CONTENT.search(declarations)
        if hides or turns or content:
            names = selectors.rpartition("{")[2][-1000:].split(",")
            drawn = (content[1] or content[2]) if content else ""
            yield _Rule(names, bool(hides), bool(turns), drawn, inside)


class _Styling:
    """Rules being applied to a page, for as long as they may take."""

    def __init__(self, body: LexborNode, tags: int) -> None:
        self._body = body
        self._tags = tags
        self._left = _MAX_STYLE_WORK

    def apply(self, styles: str) -> None:
        # Icons and dashes are drawn on every page, an @ on few.
        draws_signs = _DRAWN_AT.search(styles) is not None
        for rule in _rules_of(styles):
            for selector in rule.selectors:
                if rule.content and draws_signs and (made := _GENERATED.match(selector)):
                    self._pay(_generate(self._body, made[1], made[2].lower(), rule.content))
                elif (rule.hides or rule.turns) and (simple := _SIMPLE.match(selector)):
                    styled = _restyle(self._body, simple[1], hidden=rule.hides)
                    self._pay(styled)
                    if styled and rule.hides and not rule.on_some_screens:
                        self._left -= _WORK_OF_BLOCK * _hide_bait(self._body, simple[1])
                elif rule.turns and (nested := _NESTED.match(selector)):
                    self._restyle_nested(nested[1], hidden=rule.hides)
                if self._left < 0:
                    return

    def remove_decoys(self, styles: str, near: frozenset[bytes]) -> None:
        """What nested rules hide, of the elements that the words ``near`` signs name."""
        for rule in _rules_of(styles):
            for selector in rule.selectors if rule.hides else ():
                nested = _NESTED.match(selector)
                if nested and near.issuperset(_names_of_last(nested[1])):
                    self._restyle_nested(nested[1], hidden=True)
                if self._left < 0:
                    return

    def _restyle_nested(self, selector: str, *, hidden: bool) -> None:
        self._left -= self._tags * _WORK_OF_NESTED
        if self._left >= 0:
            self._pay(_restyle(self._body, selector, hidden=hidden))

    def _pay(self, styled: int) -> None:
        self._left -= self._tags + styled * _WORK_OF_STYLED


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
    """Hide or turn what the selector names; tells how many. Of blocks that are hidden see ``_hide_bait``."""
    nodes = body.css(selector)[:_MAX_STYLED]
    for node in outermost(node for node in nodes if not hidden or node.tag in _INLINE):
        if hidden:
            node.decompose()
        else:
            _turn(node)
    return len(nodes)


def _hide_bait(body: LexborNode, selector: str) -> int:
    """Most blocks that are hidden by a class are opened by scripts; bait is not. Tells how many there are."""
    blocks = outermost(node for node in body.css(selector)[:_MAX_STYLED] if node.tag not in _INLINE)
    for block in filter(is_bait, blocks):
        block.decompose()
    return len(blocks)
