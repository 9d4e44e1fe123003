"""A page's markup made ready: what a reader sees as text, scripts and styles apart, hostile shapes made flat.

Parsers of HTML take quadratic time for elements that are nested without end, for endless attributes, and for
formatting that is never closed. The standard demands it of them, so such pages are cut to size before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from string import ascii_letters, digits
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from sendonce.adapters.contacts.bait import TEMPLATE
from sendonce.adapters.contacts.drawn import Signs
from sendonce.adapters.contacts.visibility import remove_decoys, show_as_seen
from sendonce.domain.prospecting.written_addresses import words_for_signs

MAX_PAGE = 2 << 20
# Below so many tags no shape is expensive; up to many, nesting takes a fraction of a second.
_FEW_TAGS = 2000
_MANY_TAGS = 10_000
# Blink nests no deeper than this, either.
_MAX_DEPTH = 512
_MAX_FORMATTING = 64
_LONG_RUN = 4000
BETWEEN = "\x1e"
# An @ that touches the end of an element, or a word beside it that may go on beyond one.
_JOINT_BEHIND = re.compile(r"\x1e|[\w.-]{1,250}\x1e+[\w.-]", re.ASCII)
_OF_WORDS = f"{ascii_letters}{digits}_.+-"
_MAX_JOINTS = 1000
_NAME_OR_SIGN = re.compile(r"[a-zA-Z0-9@]")
_DOTS = (".", "dot", "точк", "тчк")

_CAPITALS_TO_SMALL = bytes(range(256)).lower()
_NOT_ASCII = bytes(range(128, 256))
# In any case, but with a "<" to look for: so a pattern is quick to pass a page.
_SCRIPT, _STYLE = b"[sS][cC][rR][iI][pP][tT]", b"[sS][tT][yY][lL][eE]"
_RAW = re.compile(rb"<[sS](?:(%b)|%b)\b([^<>]*)>?" % (_SCRIPT[4:], _STYLE[4:]))
_END_OF_SCRIPT, _END_OF_STYLE = re.compile(rb"</%b>?" % _SCRIPT), re.compile(rb"</%b>?" % _STYLE)
# info<script>document.write('@')</script>firma.ru
_WRITES = re.compile(
    r"""\s*document\.write\(\s*(?:["']([\w.@&#;-]{1,60})["']|String\.fromCharCode\((\d{2,3})\))\s*\)\s*;?\s*""",
    re.ASCII,
)
_SHORT_SCRIPT = 150
_TEMPLATE = re.compile(rb"<template\b", re.IGNORECASE)
_END_OF_TEMPLATE = re.compile(rb"</template\b", re.IGNORECASE)
_FORMATTING = b"b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u"
# Void elements and those that the next one of their kind ends.
_FLAT = b"area|base|br|col|dd|dt|hr|img|input|li|link|meta|option|p|param|source|td|th|tr|tbody|thead|wbr|a"
_NESTING = re.compile(rb"<(/?)(?!(?:%b|%b)\b)([a-z][a-z0-9-]*)" % (_FLAT, _FORMATTING))
_FORMATS = re.compile(rb"<(/?)(%b)\b" % _FORMATTING)
_OPENED_FORMATS = re.compile(rb"<(?=[bcefinstu])(?:%b)\b" % _FORMATTING)
_ALL_BUT_LINKS = re.compile(rb"</?(?!(?:a|area|meta)\b)[a-zA-Z!][^<>]*>", re.IGNORECASE)
# A tag ends here, whichever quote it is in.
_END_OF_ANY_TAG = b"\"'>"
_BETWEEN_ATTRIBUTES = re.compile(rb"[\s/\"']")
_CUT_EACH = 800

_BLOCK_TAGS = """
a address article aside blockquote body br button dd details div dl dt fieldset figure footer form h1 h2 h3
h4 h5 h6 header hr label li main nav ol option p pre section select summary table tbody td textarea th title
tr ul
"""
_BLOCKS = frozenset(_BLOCK_TAGS.split())
# A link with a part of an address in it is no block: <a>info</a>@firma.ru
_BLOCK = re.compile(rb"<(?=/?(?:%b)[\s>/])(?!/a>@)" % b"|".join(sorted(map(str.encode, _BLOCKS))))
_HOLDERS_OF_SIGNS = '*:lexbor-contains("@")'
_BOTH_SIDES = re.compile(r"[\w.][\s\x1e]*@[\s\x1e]*\w")
_MAX_BLOCKS = 50
# Most others are pictures for fine screens.
_AT_SIGN = re.compile(rb"@(?!\dx\.)")
_MAX_SIGNS = 2000
# Their first character, their ASCII part, and the words: to find Cyrillic among Cyrillic takes long.
_BRACKETED = (
    (b"[", b"[at]", b"[at]"),
    (b"{", b"{at}", b"{at}"),
    (b"(", b"(at)", b"(at)"),
    (b"(", b"()", "(соб".encode()),
    (b"[", b"[]", "[соб".encode()),
)
_MAX_BRACKETED = 100
_MARKS_OF_OTHER_SIGNS = (
    *((b"\xef", b"\xef"), (b"\xf0", b"\xf0"), (b"\xe2", b"\xe2\x93")),
    *((b"&", b"&#"), (b"&", b"&lt")),
)
_WIDE_SIGNS = ("＠".encode(), "﹫".encode())
_MAX_NODES = 500
_NEAR = 300
_WORD = re.compile(rb"[\w-]+")
_MAX_AROUND = 100


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
    """``html`` is UTF-8 without scripts and styles; ``lowered`` is its ASCII part in lower case."""

    tree: LexborHTMLParser
    html: bytes
    scripts: list[Script]
    styles: str
    lowered: bytes

    def select(self, query: str, *marks: bytes) -> list[LexborNode]:
        """Nodes that the query names, at most a few hundred.

        A page without any of the ``marks``, in lower case, has none, and that is quicker to see. Python finds
        marks of up to five bytes three times as fast as longer ones.
        """
        return self.tree.css(query)[:_MAX_NODES] if any(mark in self.lowered for mark in marks) else []

    @cached_property
    def signs(self) -> Signs:
        plain = [sign.start() for sign in islice(_AT_SIGN.finditer(self.html), _MAX_SIGNS)]
        words = [word for sign, mark, word in _BRACKETED if sign in self.lowered and mark in self.lowered]
        return Signs(plain, [at for word in words for at in self._places(word)])

    @cached_property
    def seen(self) -> Seen:
        """Elements that stand apart are apart, by ``BETWEEN`` or a line's end; what is one word on the
        screen is one here.
        """
        text = _text_of(self.tree.body, BETWEEN)
        words = words_for_signs(text, other_signs=self._may_have_other_signs())
        cut = any(_is_cut(text, at) for at in words) or self._has_wide_signs()
        if not cut and not _has_joints(text):
            return Seen(text, words)
        # Tags stand inside of what may be an address: which of them part words matters. This is rare.
        if remove_decoys(self.tree, self.styles, self.lowered, self.words_near_signs()):
            text = _text_of(self.tree.body, BETWEEN)
        for block in [self.tree.body] if cut else _blocks_with_signs(self.tree):
            text = text.replace(_text_of(block, BETWEEN), _joined_text(block))
        return Seen(text, words_for_signs(text))

    def _places(self, word: bytes) -> Iterator[int]:
        at = self.html.find(word)
        for _ in range(_MAX_BRACKETED):
            if at < 0:
                return
            yield at
            at = self.html.find(word, at + 1)

    def _may_have_other_signs(self) -> bool:
        """Beyond the letters of Europe, as an entity, or in angle brackets."""
        if any(self.html[at - 1 : at] == b"<" for at in self.signs.plain):
            return True
        # To look for one byte takes no time.
        return any(first in self.html and mark in self.html for first, mark in _MARKS_OF_OTHER_SIGNS)

    def _has_wide_signs(self) -> bool:
        """``＠`` or ``﹫``. Their first byte is rare, and to look for one byte takes no time."""
        return b"\xef" in self.html and any(sign in self.html for sign in _WIDE_SIGNS)

    def words_near_signs(self) -> frozenset[bytes]:
        """Of places where a decoy or bait would be: few selectors name anything there."""
        places = (self.html[max(0, at - _NEAR) : at + _NEAR].lower() for at in self.signs.plain[:_MAX_AROUND])
        return frozenset(_WORD.findall(b"\n".join(places)))


def _has_joints(text: str) -> bool:
    at = -1
    for _ in range(_MAX_JOINTS):
        at = text.find("@", at + 1)
        if at < 0:
            return False
        if _ends_in_joint(text[max(0, at - 70) : at]) or _JOINT_BEHIND.match(text, at + 1):
            return True
    return True


def _ends_in_joint(before: str) -> bool:
    front = before.rstrip(_OF_WORDS)
    return front[-1:] == BETWEEN and (front == before or front.rstrip(BETWEEN)[-1:] in _OF_WORDS)


def _is_cut(text: str, at: int) -> bool:
    """Whether an address in words goes on elsewhere: this element has no name before or no dot behind."""
    before = text[max(0, at - 40) : at].rpartition(BETWEEN)[2]
    behind = text[at : at + 60].partition(BETWEEN)[0].lower()
    return _NAME_OR_SIGN.search(before) is None or not any(dot in behind for dot in _DOTS)


def _text_of(node: LexborNode | None, separator: str) -> str:
    return node.text(separator=separator) if node is not None else ""


def _blocks_with_signs(tree: LexborHTMLParser) -> list[LexborNode | None]:
    """The smallest blocks that hold an @ and what stands on both sides of it."""
    holders = tree.css(_HOLDERS_OF_SIGNS)
    if not 0 < len(holders) <= _MAX_BLOCKS:
        return [tree.body]
    return list({block.mem_id: block for block in map(_block_around, holders)}.values())


def _block_around(node: LexborNode) -> LexborNode:
    while node.parent is not None and node.tag != "body":
        if node.tag in _BLOCKS and _BOTH_SIDES.search(_text_of(node, BETWEEN)):
            break
        node = node.parent
    return node


def _joined_text(block: LexborNode | None) -> str:
    """Its text with a line's end for each block inside, and nothing between pieces of a word."""
    html = (block.html or "").encode("utf-8", "replace") if block is not None else b""
    return _text_of(LexborHTMLParser(_BLOCK.sub(b"\n<", html)).body, "")


def read_page(html: bytes) -> Page:
    """``html`` in UTF-8."""
    html = html.replace(b"\x00", b"")
    if len(html) > MAX_PAGE:
        html = html[:MAX_PAGE].decode("utf-8", "ignore").encode()
    html, scripts, styles = _apart(html)
    html = _with_tags_that_end(html)
    lowered = html.translate(_CAPITALS_TO_SMALL, _NOT_ASCII)
    if b"<temp" in lowered:  # which scripts put into the page; the parser keeps it apart
        html = _END_OF_TEMPLATE.sub(b"</div", _TEMPLATE.sub(b"<div %b " % TEMPLATE.encode(), html))
    if _is_too_deep(lowered):
        html = _ALL_BUT_LINKS.sub(b"\n", html)
    page = Page(LexborHTMLParser(html), html, scripts, styles, lowered)
    show_as_seen(page.tree, html, lowered, styles, page.signs, page.words_near_signs)
    return page


def _apart(html: bytes) -> tuple[bytes, list[Script], str]:
    """The markup without its scripts and styles, and these."""
    kept: list[bytes] = []
    scripts: list[Script] = []
    styles: list[str] = []
    rest = 0
    while opened := _RAW.search(html, rest):
        kept.append(html[rest : opened.start()])
        closing = (_END_OF_SCRIPT if opened[1] else _END_OF_STYLE).search(html, opened.end())
        rest = closing.end() if closing else len(html)
        body = html[opened.end() : closing.start() if closing else None].decode("utf-8", "replace")
        if opened[1]:
            scripts.append(Script(opened[2].decode("utf-8", "replace"), body))
            if len(body) < _SHORT_SCRIPT and (written := _WRITES.fullmatch(body)):
                kept.append((written[1] or chr(int(written[2]))).encode())
        else:
            styles.append(body)
    kept.append(html[rest:])
    return b"".join(kept), scripts, "\n".join(styles)


def _with_tags_that_end(html: bytes) -> bytes:
    if any(html.find(b">", start, start + _LONG_RUN) < 0 for start in range(0, len(html), _LONG_RUN)):
        html = b">".join(_cut(run) if len(run) > _LONG_RUN else run for run in html.split(b">"))
    return html


def _is_too_deep(lowered: bytes) -> bool:
    tags = lowered.count(b"<")
    if tags < _FEW_TAGS:
        return False
    if (
        len(_OPENED_FORMATS.findall(lowered)) > _MAX_FORMATTING
        and _depth(_FORMATS, lowered) > _MAX_FORMATTING
    ):
        return True
    return tags > _MANY_TAGS and _depth(_NESTING, lowered) > _MAX_DEPTH


def _depth(tags: re.Pattern[bytes], lowered: bytes) -> int:
    """How deep they are nested, at most. An end tag ends only what has its name, ``</x>`` no ``<div>``."""
    now: Counter[bytes] = Counter()
    deepest: Counter[bytes] = Counter()
    for end, name in tags.findall(lowered):
        now[name] = max(0, now[name] - 1) if end else now[name] + 1
        deepest[name] = max(deepest[name], now[name])
    return deepest.total()


def _cut(run: bytes) -> bytes:
    """End whatever tag this is every so often: no tag has hundreds of attributes."""
    pieces: list[bytes] = []
    start = 0
    while found := _BETWEEN_ATTRIBUTES.search(run, start + _CUT_EACH):
        pieces.append(run[start : found.end()])
        start = found.end()
    return _END_OF_ANY_TAG.join([*pieces, run[start:]])
