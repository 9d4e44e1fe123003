"""Text with styles inside a block, as HTML."""

from __future__ import annotations

from html import escape
from itertools import groupby

from sendonce.domain.engine.templates import map_literals
from sendonce.domain.mailouts.blocks import RichText, Span
from sendonce.domain.mailouts.rendering.styles import MONO, Sheet, roles_of

_LINE_BREAK = "<br>"


def html_text(source: str) -> str:
    """Template source with everything escaped but its variables, whose values the builder escapes."""
    return map_literals(source, escape)


def html_words(source: str) -> str:
    return map_literals(source, lambda literal: escape(literal).replace("\n", _LINE_BREAK))


def html_inline(sheet: Sheet, text: RichText) -> str:
    """Neighbouring spans that share an address make one link."""
    written = []
    for link, spans in groupby(text, key=lambda span: span.link):
        words = "".join(_styled(sheet, span) for span in spans)
        if link:
            opening = sheet.tag("a", "", "link", attributes=f'href="{html_text(link)}"')
            words = f"{opening}{words}</a>"
        written.append(words)
    return "".join(written)


def _styled(sheet: Sheet, span: Span) -> str:
    words = html_words(span.text)
    if span.code:
        ground = [] if span.paint.background else ["panel"]
        words = f"{sheet.tag('code', MONO, *ground)}{words}</code>"
    roles = roles_of(span.paint)
    if roles:
        words = f"{sheet.tag('span', '', *roles)}{words}</span>"
    for wanted, name in (
        (span.strike, "del"),
        (span.underline, "u"),
        (span.italic, "em"),
        (span.bold, "strong"),
    ):
        if wanted:
            words = f"<{name}>{words}</{name}>"
    return words
