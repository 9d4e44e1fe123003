"""Whose address stands in a block, by what the block is called: a trap for harvesters, or somebody else's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

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
    r"review|testimonial|otzyv|otziv|comments?\b|partner|dealer"
    r"|develop|created|creator|made-?by|studio|webmaster|powered|design(?:ed)?-?by|site-?by",
    re.IGNORECASE,
)
_NAMES = ("class", "id", "role", "itemprop")


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


def is_among_others(node: LexborNode) -> bool:
    """Whether it stands among reviews, comments and partners, or where the makers of the site sign."""
    return _is_called(_OF_OTHERS, node)


def _is_called(names: re.Pattern[str], node: LexborNode) -> bool:
    return any(
        names.search(name) for above in islice(_and_above(node), _MAX_ABOVE) for name in _names_of(above)
    )


def _and_above(node: LexborNode) -> Iterator[LexborNode]:
    around: LexborNode | None = node
    while around is not None and around.tag not in ("body", "html"):
        yield around
        around = around.parent


def _names_of(node: LexborNode) -> list[str]:
    attributes = node.attributes
    return [attributes[name] or "" for name in _NAMES if name in attributes]
