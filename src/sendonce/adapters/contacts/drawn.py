"""Signs that are drawn and not written: by pictures and icons, and by the content of styles."""

from __future__ import annotations

import re
from itertools import chain
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

_LABELLED = (
    'img[alt],img[title],img[src*="/at."],img[src*="sobak"],svg,[aria-label],'
    'i[class*="-at"],span[class*="-at"],i.material-icons,span[class*="material"]'
)
# An @, or the bracket of a word for it, that begins an attribute or a title.
_BEGINS = re.compile(rb"[\"'=](?:@[\"'\s>]|[\[({])|>@</t")
_MARKS = (b'="at', b'-at"', b"-at ", b"/at.", b"soba")
# The same by a character in them: to find a single one takes no time.
_MARKS_WITH = {b"'": (b"='at", b"-at'", b"=''"), b"_": (b"te_em",)}
# info@firma<img alt=".">ru
_PICTURE_IN_DOMAIN = re.compile(rb"[\w.-]{1,60}<img", re.IGNORECASE)
# «alt="собака"» has nothing in it but Cyrillic.
_EMPTY_IN_ASCII = b'=""'
_LABELLED_IN_RUSSIAN = '[alt*="соба" i],[title*="соба" i],[alt*="точка" i]'
_SIGNS = {
    "@": re.compile(
        r"\s*[\[(]?\s*(?:@|at|at[ -]sign|собака|собачка|alternate_email|dog)\s*[\])]?\s*", re.IGNORECASE
    ),
    ".": re.compile(r"\s*[\[(]?\s*(?:\.|dot|точка)\s*[\])]?\s*", re.IGNORECASE),
}
_FILE = re.compile(r"/at\.(?:gif|png|svg|jpe?g|webp)|sobak", re.IGNORECASE)
_ICON = re.compile(r"(?:^|[\s-])(?:fa|bi|icon|mdi|ri|ti|lni|las)-at(?:$|[\s-])", re.IGNORECASE)
_FRAGMENT = re.compile(r"#(?:[\w-]*-)?at\Z", re.IGNORECASE)
_MAX_NODES = 500


class Signs(NamedTuple):
    """Where in a page's markup an @ stands, and where a word in brackets may stand for one."""

    plain: list[int]
    bracketed: list[int]


def write_drawn_signs(tree: LexborHTMLParser, html: bytes, lowered: bytes, signs: Signs) -> None:
    """``info<img alt="@">firma.ru`` and its like, as text."""
    nodes: list[LexborNode] = []
    if any(_is_drawn(html, at) for at in chain(*signs)) or _has_marks(lowered):
        nodes = tree.css(_LABELLED)
    elif _EMPTY_IN_ASCII in lowered:
        nodes = tree.css(_LABELLED_IN_RUSSIAN)
    for node in nodes[:_MAX_NODES]:
        sign = _sign_of(node)
        if sign:
            node.replace_with(sign)


def _is_drawn(html: bytes, at: int) -> bool:
    begins = at > 0 and _BEGINS.match(html, at - 1)
    return bool(begins or _PICTURE_IN_DOMAIN.match(html, at + 1))


def _has_marks(lowered: bytes) -> bool:
    if any(mark in lowered for mark in _MARKS):
        return True
    return any(
        sign in lowered and any(mark in lowered for mark in marks) for sign, marks in _MARKS_WITH.items()
    )


def _sign_of(node: LexborNode) -> str:
    attributes = node.attributes
    if _FILE.search(attributes.get("src") or "") or _ICON.search(attributes.get("class") or ""):
        return "@"
    labels = [attributes.get(name) or "" for name in ("alt", "title", "aria-label")]
    if node.tag == "svg":
        labels += _labels_in(node)
    elif not any(labels) and "material" in (attributes.get("class") or ""):
        labels.append(node.text(separator=""))
    return next((sign for label in labels for sign, names in _SIGNS.items() if names.fullmatch(label)), "")


def _labels_in(picture: LexborNode) -> list[str]:
    """Its title, and what it is drawn by: ``<use href="#icon-at">``."""
    title, use = picture.css_first("title"), picture.css_first("use")
    drawn_by = " ".join(value or "" for value in use.attributes.values()) if use is not None else ""
    return [title.text(separator="") if title is not None else "", "@" if _FRAGMENT.search(drawn_by) else ""]


_CONTENT = re.compile(r"(?<![\w-])content\s*:\s*([^;{}]{1,200})", re.IGNORECASE)
_PART = re.compile(
    r"""\s*(?:"([^"]{0,80})"|'([^']{0,80})'|attr\(\s*([\w-]{1,40})[^()]{0,40}\)|var\(\s*(--[\w-]{1,40})\s*\))\s*"""
)
_DRAWS_SIGNS = re.compile(r"""["'][^"'{};]{0,60}(?:@|\\0*40)|content\s*:[^;{}]{0,60}attr\(""", re.IGNORECASE)
_VARIABLE = re.compile(r"(--[\w-]{1,40})\s*:\s*[\"']([^\"'{};]{1,80})[\"']")
_PART_OF_ADDRESS = re.compile(r"[A-Za-z0-9@._-]+")
_ESCAPE = re.compile(r"\\0*([0-9a-fA-F]{2,4})\s?")
_MAX_VARIABLES = 200


def draw_signs(styles: str) -> bool:
    """Icons and dashes are drawn on every page, an @ on few."""
    return _DRAWS_SIGNS.search(styles) is not None


class Content(NamedTuple):
    """What a style writes: texts, attributes' names and variables, as they follow each other."""

    parts: list[tuple[str, str, str, str]]

    def written_at(self, node: LexborNode, variables: dict[str, str]) -> str:
        """Empty where it can be no part of an address."""
        texts = (
            single or double or node.attributes.get(attribute) or variables.get(variable) or ""
            for double, single, attribute, variable in self.parts
        )
        text = "".join(_ESCAPE.sub(lambda code: chr(int(code[1], 16)), text) for text in texts)
        return text if _PART_OF_ADDRESS.fullmatch(text) else ""


def content_of(declarations: str) -> Content | None:
    found = _CONTENT.search(declarations)
    parts = _PART.findall(found[1]) if found else []
    return Content(parts) if parts else None


def variables_of(styles: str) -> dict[str, str]:
    return dict(_VARIABLE.findall(styles)[:_MAX_VARIABLES])
