"""What a reader sees of a page: hidden decoys taken out, text that runs backwards turned, and what styles and
pictures draw put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from sendonce.adapters.contacts.bait import is_bait
from sendonce.adapters.contacts.drawn import (
    Content,
    Signs,
    content_of,
    draw_signs,
    variables_of,
    write_drawn_signs,
)
from sendonce.adapters.contacts.nodes import outermost, remove_hidden

_HIDDEN_NODES = '[style*="display" i],[style*="visibility" i],[style*="font-size" i],[hidden]'
HIDES = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE)
# Blocks are shown like this until a script moves them in; a piece of a word is a decoy.
_VEILED_NODES = (
    "[style],.hidden,.d-none,.hide,.is-hidden,.visually-hidden,.visuallyhidden,.sr-only,.screen-reader-text"
)
_MAX_VEILED = 1000
_UNSEEN_CLASSES = frozenset(("hidden", "d-none", "hide", "is-hidden"))
# "hidden md:block" is shown on wide screens.
_SHOWN_AGAIN = re.compile(r":|d-[a-z]+-|block|flex|inline|visible|show", re.IGNORECASE)
_COLOURS = re.compile(
    r"(?<![\w-])(background(?:-color)?|color)\s*:\s*(#(?:[0-9a-f]{6}|[0-9a-f]{3})|[a-z]{3,12})", re.IGNORECASE
)
_SHORT_COLOURS = {"white": "#fff", "black": "#000"}
# hCard: «рабочий» before an address without a blank.
_TYPES_IN_CARDS = ".vcard .email .type,.vcard .tel .type"
_VEILING_CLASSES = frozenset(
    (
        *(b"visually-hidden visuallyhidden sr-only screen-reader-text".split()),
        *(b"hidden d-none hide is-hidden".split()),
    )
)
_VEILING_STYLES = frozenset(
    (
        *(b"opacity width height left top text-indent".split()),
        *(b"clip clip-path scale color background max-height font-size".split()),
    )
)
_VEILS = re.compile(
    r"(?<![\w-])(?:width|height)\s*:\s*[01](?:px)?\s*(?:;|!|\Z)|opacity\s*:\s*0(?![.\d])|(?:left|top|text-indent)\s*:\s*-\d{3}|visually-?hidden|sr-only|screen-reader-text"
    r"|clip\s*:\s*rect\(\s*0|clip-path\s*:\s*inset\(\s*(?:50|100)%|scale\(\s*0\s*\)|max-height\s*:\s*0(?![.\d])"
    r"|font-size\s*:\s*1px",
    re.IGNORECASE,
)
_TURNED_NODES = '[style*="-override" i],bdo[dir="rtl" i]'
_REVERSES = re.compile(r"bidi-override|isolate-override", re.IGNORECASE)
_COMMENT = re.compile(r"/\*(?:.*?\*/|.*)", re.DOTALL)
_SIMPLE = re.compile(r"\s*((?:[a-z0-9]+)?[.#][\w-]+)\s*\Z", re.IGNORECASE)
_COMPOUND = r"(?:[a-z][a-z0-9]*(?:[.#][\w-]+){0,2}|[.#][\w-]+(?:\.[\w-]+){0,2})"
# One step to any descendant: to match two of them takes time by the square of a page's depth.
_NESTED = re.compile(
    rf"\s*({_COMPOUND}(?:(?:\s*>\s*|\s+){_COMPOUND}(?:\s*>\s*{_COMPOUND}){{0,2}})?)\s*\Z", re.IGNORECASE
)
_GENERATED = re.compile(
    rf"\s*((?:{_COMPOUND}(?:\s*>\s*|\s+))?(?:{_COMPOUND})?(?:\[[\w-]{{1,40}}\])?)::?(before|after)\s*\Z",
    re.IGNORECASE,
)
_HIDING_STYLES = ("display", "visibility", "font-size")
_TELLING_STYLES = ("display", "visibility", "-override", "content", "left", "clip", "opacity", "background")
_WORD = re.compile(rb"[\w-]+")
_INLINE_TAGS = "b bdo big code del em font i ins label mark nobr s small span strike strong sub sup u"
_INLINE = frozenset(_INLINE_TAGS.split())
_MARKS_OF_UNSEEN = (b"-none", b"hide")
_MAX_NODES = 500
_MAX_STYLED = 200
_MAX_STYLES = 200_000
# A rule looks at every element; one that it names takes as long as so many others. In all, about a second.
_MAX_STYLE_WORK = 50_000_000
_WORK_OF_STYLED = 2000
_WORK_OF_NESTED = 100
_WORK_OF_BLOCK = 100_000


Words = Callable[[], frozenset[bytes]]


def show_as_seen(
    tree: LexborHTMLParser,
    html: bytes,
    lowered: bytes,
    styles: str,
    signs: Signs,
    words_near_signs: Words,
) -> None:
    """Take out what no reader sees, turn what is written backwards, put in what styles and icons write."""
    styled, hidden = b"yle=" in lowered, b"idden" in lowered
    if styled or hidden:
        nodes = tree.css(_HIDDEN_NODES)[:_MAX_NODES]
        remove_hidden([node for node in nodes if _is_hidden(node)], _INLINE)
    may_be_unseen = styled or hidden or any(mark in lowered for mark in _MARKS_OF_UNSEEN)
    if may_be_unseen and _may_be_veiled(words_near_signs(), styled=styled):
        _remove_bait(tree)
    if b"vcard" in lowered:
        for node in tree.css(_TYPES_IN_CARDS)[:_MAX_NODES]:
            node.decompose()
    if (styled and b"-over" in lowered) or b"<bdo" in lowered:
        for node in outermost(filter(_is_turned, tree.css(_TURNED_NODES)[:_MAX_NODES])):
            _turn(node)
    write_drawn_signs(tree, html, lowered, signs)
    if tree.body is not None and any(word in styles for word in _TELLING_STYLES):
        _Styling(tree.body, lowered.count(b"<")).apply(styles, words_near_signs())


def remove_decoys(tree: LexborHTMLParser, styles: str, lowered: bytes, near: frozenset[bytes]) -> bool:
    """Take out what no reader sees inside of words. ``near`` are the words of the markup near each @.

    False where the page cannot have any of that.
    """
    looked = False
    if _may_be_veiled(near, styled=b"yle=" in lowered):
        _remove_veiled(tree)
        looked = True
    if tree.body is not None and any(word in styles for word in _HIDING_STYLES):
        _Styling(tree.body, lowered.count(b"<")).remove_decoys(styles, near)
        looked = True
    return looked


def _may_be_veiled(near: frozenset[bytes], *, styled: bool) -> bool:
    return not near.isdisjoint(_VEILING_CLASSES) or (styled and not near.isdisjoint(_VEILING_STYLES))


def _is_hidden(node: LexborNode) -> bool:
    return "hidden" in node.attributes or HIDES.search(node.attributes.get("style") or "") is not None


def _is_turned(node: LexborNode) -> bool:
    return node.tag == "bdo" or _REVERSES.search(node.attributes.get("style") or "") is not None


def _remove_bait(tree: LexborHTMLParser) -> None:
    """Blocks without a size, transparent, or beside the screen, with nothing but an address in them."""
    nodes = tree.css(_VEILED_NODES)[:_MAX_VEILED]
    for node in filter(is_bait, outermost(filter(_is_unseen, nodes))):
        node.decompose()


def _is_unseen(node: LexborNode) -> bool:
    classes = (node.attributes.get("class") or "").split()
    if not _UNSEEN_CLASSES.isdisjoint(classes):
        return not any(map(_SHOWN_AGAIN.search, classes))
    return _veils(node.attributes.get("style") or "")


def _veils(style: str) -> bool:
    """Whether what is styled so cannot be read: without a size, beside the screen, or in the colour of its
    ground.
    """
    if _VEILS.search(style):
        return True
    colours = {name[:5].lower(): _named_shortly(colour.lower()) for name, colour in _COLOURS.findall(style)}
    return colours.get("color") is not None and colours.get("color") == colours.get("backg")


def _named_shortly(colour: str) -> str:
    """``white`` and ``#ffffff`` as ``#fff``."""
    if len(colour) == 7 and colour[1::2] == colour[2::2]:
        return f"#{colour[1::2]}"
    return _SHORT_COLOURS.get(colour, colour)


def _remove_veiled(tree: LexborHTMLParser) -> None:
    for node in outermost(node for node in tree.css(_VEILED_NODES)[:_MAX_VEILED] if _is_veiled(node)):
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
    veils: bool
    turns: bool
    content: Content | None
    on_some_screens: bool


def _rules_of(styles: str) -> Iterator[_Rule]:
    inside = False
    for rule in _COMMENT.sub("", styles[:_MAX_STYLES]).split("}"):
        selectors, _, declarations = rule.rpartition("{")
        # @media (…) { .a { … } .b { … } }: what is in it begins with a second brace, and ends with one more.
        inside = bool(rule.strip()) and (inside or "{" in selectors)
        hides, turns = HIDES.search(declarations), _REVERSES.search(declarations)
        content = content_of(declarations) if "content" in declarations else None
        veils = _veils(declarations)
        if hides or veils or turns or content:
            names = selectors.rpartition("{")[2][-1000:].split(",")
            yield _Rule(names, bool(hides), veils, bool(turns), content, inside)


class _Styling:
    """Rules being applied to a page, for as long as they may take."""

    def __init__(self, body: LexborNode, tags: int) -> None:
        self._body = body
        self._tags = tags
        self._left = _MAX_STYLE_WORK

    def apply(self, styles: str, near: frozenset[bytes]) -> None:
        draws_signs = draw_signs(styles)
        variables = variables_of(styles) if draws_signs else {}
        for rule in _rules_of(styles):
            for selector in rule.selectors:
                if (rule.hides or rule.veils) and not rule.on_some_screens:
                    self._remove_bait(selector, near)
                if rule.content and draws_signs and (made := _GENERATED.match(selector)):
                    self._pay(_generate(self._body, made, rule.content, variables))
                elif (rule.hides or rule.turns) and (simple := _SIMPLE.match(selector)):
                    self._pay(_restyle(self._body, simple[1], hidden=rule.hides))
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

    def _remove_bait(self, selector: str, near: frozenset[bytes]) -> None:
        """Most blocks that are hidden by a class are opened by scripts; bait is not."""
        named = _NESTED.match(selector)
        if named is None or not near.issuperset(_names_of_last(named[1])):
            return
        self._left -= self._tags * _WORK_OF_NESTED
        if self._left >= 0:
            nodes = outermost(self._body.css(named[1])[:_MAX_STYLED])
            self._left -= _WORK_OF_BLOCK * len(nodes)
            for node in filter(is_bait, nodes):
                node.decompose()

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


def _generate(body: LexborNode, made: re.Match[str], content: Content, variables: dict[str, str]) -> int:
    """``.at::before { content: "@" }``; how many elements there are."""
    nodes = body.css(made[1])[:_MAX_STYLED] if made[1] else []
    for node in nodes:
        text = content.written_at(node, variables)
        first = node.child
        if text and made[2].lower() == "before" and first is not None:
            first.insert_before(text)
        elif text:
            node.insert_child(text)
    return len(nodes)


def _restyle(body: LexborNode, selector: str, *, hidden: bool) -> int:
    """Hide or turn what the selector names; tells how many. Hidden blocks may be opened by scripts."""
    nodes = body.css(selector)[:_MAX_STYLED]
    for node in outermost(node for node in nodes if not hidden or node.tag in _INLINE):
        if hidden:
            node.decompose()
        else:
            _turn(node)
    return len(nodes)
