"""Addresses in text that servers and people write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sendonce.domain.engine.addresses import parse_address
from sendonce.errors import BadInput

# Searched in capped text; bounded on both sides, so that it takes linear time.
# "=" is left out, though it is allowed: Exchange writes "SMTP=user@example.com".
_LOCAL = r"[A-Za-z0-9!#$%&'*+/?^_`{|}~.-]"
_ADDRESS = re.compile(rf"(?<!{_LOCAL}){_LOCAL}{{1,64}}@[^\s<>()\[\],;:\"'@]{{3,200}}")
_ANGLED = re.compile(r"<([^<>\s]{1,64}@[^<>\s]{3,200})>")


def addresses_in(text: str) -> Iterator[str]:
    for found in _ADDRESS.finditer(text):
        if address := _readable(found[0]):
            yield address


def first_address(text: str) -> str | None:
    """The address of a header field: in angle brackets, else the first at all."""
    angled = _ANGLED.search(text)
    if angled and (address := _readable(angled[1])):
        return address
    return next(addresses_in(text), None)


def _readable(text: str) -> str | None:
    try:
        return parse_address(text.strip("'\"`.,;:!?*")).text
    except BadInput:
        return None
