"""Whose address stands in a block, by what the block is called: a trap for harvesters, or somebody else's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

from sendonce.domain.prospecting.not_contacts import heads_others

# What a ``<template>`` becomes is marked so: parsers keep what is in one apart from the page.
TEMPLATE = "data-of-template"
_MAX_ABOVE = 8
_FEW_LETTERS = 60
_SAYS_IT_IS_BAIT = re.compile(
    r"ловушк|не пишите|honey-?pot|spam-?trap|do not (?:write|email|use)", re.IGNORECASE
)
# Hidden until somebody opens it.
_OPENS = re.compile(
    r"modal|pop-?up|menu|nav|drop|fancy|dialog|mobile|tab|collaps|accordion|toggle|slid|contact|kontakt|callback|"
    r"form|side|panel|canvas|footer|header|spoiler|hint|tip|city|region|filial|address|drawer|overlay|lightbox",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(
    r"review|testimonial|otzyv|otziv|comment|question|partner|dealer|distributor|supplier"
    r"|develop|created|creator|made-?by|studio|webmaster|powered|design(?:ed)?-?by|site-?by",
    re.IGNORECASE,
)
_NAMES = ("class", "id", "role", "itemprop")
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
# A heading before one of these says nothing about what is in it.
_LANDMARKS = frozenset(("footer", "header", "aside", "nav", "address"))
_MAX_BESIDE = 30
# What opens on a click, and says more than a menu does.
_OPENS_TO_READ = re.compile(
    r"modal|pop-?up|dialog|tab|accordion|collaps|spoiler|contact|kontakt|city|filial", re.IGNORECASE
)


def is_bait(block: LexborNode) -> bool:
    """Whether a block that nobody sees holds an address for harvesters. A menu or a pop-up is called so, or
    holds more than an address.
    """
    text = block.text(separator=" ")
    if "@" not in text and block.css_first('[href^="mailto" i]') is None:
        return False
    if _SAYS_IT_IS_BAIT.search(text):
        return True
    return len(text.strip()) <= _FEW_LETTERS and not _is_called(_OPENS, block)


def opens_to_read(block: LexborNode) -> bool:
    """Whether a hidden block is a window or a tab with text in it."""
    return _is_called(_OPENS_TO_READ, block)


def is_unseen(link: LexborNode) -> bool:
    """Whether a link has nothing to click on. Icons are drawn by classes."""
    if link.tag != "a" or link.attributes.keys() - {"href", "rel", "target"}:
        return False
    if any(char.isalnum() for char in link.text(separator="")):
        return False
    return all(_is_a_point(child) for child in link.iter())


def _is_a_point(picture: LexborNode) -> bool:
    return picture.attributes.get("width") == picture.attributes.get("height") == "1"


def is_among_others(node: LexborNode) -> bool:
    """Whether it stands among reviews, comments and partners, in a sample for scripts to fill in, or where
    the makers of the site sign.
    """
    around = list(islice(_and_above(node), _MAX_ABOVE))
    return any(_is_called(_OF_OTHERS, above) or _is_a_sample(above) for above in around) or heads_others(
        _heading_over(around)
    )


def _is_a_sample(node: LexborNode) -> bool:
    """``<template>``, but for one that a browser shows as it is."""
    return TEMPLATE in node.attributes and "shadowrootmode" not in node.attributes


def _heading_over(around: list[LexborNode]) -> str:
    for above in around:
        if above.tag in _LANDMARKS:
            break
        before = above.prev
        for _ in range(_MAX_BESIDE):
            if before is None:
                break
            if before.tag in _HEADINGS:
                return before.text(separator="")
            before = before.prev
    return ""


def _is_called(names: re.Pattern[str], node: LexborNode) -> bool:
    return any(names.search(name) for name in _names_of(node))


def _and_above(node: LexborNode) -> Iterator[LexborNode]:
    around: LexborNode | None = node
    while around is not None and around.tag not in ("body", "html"):
        yield around
        around = around.parent


def _names_of(node: LexborNode) -> list[str]:
    attributes = node.attributes
    return [attributes[name] or "" for name in _NAMES if name in attributes]
