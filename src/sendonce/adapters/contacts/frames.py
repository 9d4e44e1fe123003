"""Pages within a page: in a frame's ``srcdoc``, and drawings and pages that are written out in a URL."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

from sendonce.adapters.contacts.markup import Page
from sendonce.adapters.contacts.scripts import decoded_base64

# Ends with the quote that it is in; drawings use the other one.
_WRITTEN_OUT = re.compile(
    rb"""([\"'])data:(?:text/html|image/svg\+xml)((?:;[\w=-]{1,20}){0,3}),((?:(?!\1)[\s\S]){10,50000}?)\1"""
)
_TEXT = re.compile(r"<text|mailto|<p|<a ", re.IGNORECASE)


def frames_of(page: Page) -> Iterator[str]:
    for node in page.select("iframe[srcdoc]", b"srcdo"):
        yield node.attributes.get("srcdoc") or ""
    if b"data:" in page.lowered:
        for found in _WRITTEN_OUT.finditer(page.html):
            data = unquote(html.unescape(found[3].decode("utf-8", "replace")))
            source = decoded_base64(data) or "" if found[2].endswith(b"base64") else data
            if "@" in source and _TEXT.search(source):
                yield source
