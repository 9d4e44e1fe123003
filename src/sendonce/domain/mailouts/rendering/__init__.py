"""One tree of blocks, two bodies: HTML that mail programs can show, and plain text that says the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sendonce.domain.engine.letters import Letter, language_of
from sendonce.domain.mailouts.blocks import Block, Draft, Image, files, plain, walk
from sendonce.domain.mailouts.links import is_local
from sendonce.domain.mailouts.rendering.hosting import Hosted, Hosting
from sendonce.domain.mailouts.rendering.html import html_document
from sendonce.domain.mailouts.rendering.text import text_document

__all__ = ["GMAIL_CUTS_AT", "Composed", "Hosted", "Rendered", "compose", "render"]

GMAIL_CUTS_AT = 102_000
"""Bytes of HTML beyond which Gmail hides the rest, the unsubscribe link first of all."""
_NEAR_THE_CUT = 90_000

# What Outlook for Windows or Gmail does not draw (caniemail.com, image formats).
_UNDRAWN = (".svg", ".webp", ".avif", ".heic", ".heif", ".tif", ".tiff", ".ico")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Template sources, as ``Letter`` wants them. ``size`` is that of the HTML in bytes, footer apart."""

    html: str
    text: str
    size: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Composed:
    """A letter ready to be kept, with all that its author should know about it."""

    letter: Letter
    size: int
    warnings: tuple[str, ...]


def compose(draft: Draft, hosted: Mapping[str, Hosted] | None = None) -> Composed:
    """The letter that a draft becomes. ``hosted`` tells where the copies of its files are."""
    rendered = render(draft.blocks, title=draft.subject, language=draft.language, hosted=hosted)
    letter = Letter(
        subject=draft.subject,
        preheader=draft.preheader,
        html=rendered.html,
        text=rendered.text,
        from_name=draft.from_name,
        reply_to=draft.reply_to,
        text_only=draft.text_only,
        language=draft.language,
    )
    return Composed(letter, rendered.size, draft.warnings + rendered.warnings)


def render(
    blocks: Sequence[Block],
    *,
    title: str = "",
    language: str | None = None,
    hosted: Mapping[str, Hosted] | None = None,
) -> Rendered:
    """Both bodies. ``language``, "ru" or "en", is what screen readers speak; None looks at the words."""
    hosting = Hosting(hosted or {})
    text = text_document(blocks, hosting)
    html = html_document(blocks, hosting, title, language or language_of(title + text))
    size = len(html.encode("utf-8", "replace"))
    warnings = [*_file_warnings(blocks, hosting), *_size_warnings(size)]
    return Rendered(html, text, size, tuple(warnings))


def _file_warnings(blocks: Sequence[Block], hosting: Hosting) -> list[str]:
    warnings = []
    for file in files(blocks):
        name = (
            (file.alt if isinstance(file, Image) else file.title)
            or plain(file.caption)
            or file.url.partition("?")[0]
        )
        if hosting.place(file) is None and not is_local(file.url):
            warnings.append(f"“{name}” was left out: its address dies within the hour and no copy was made.")
    for block in walk(blocks):
        if isinstance(block, Image) and block.url not in hosting and _undrawn(block.url):
            warnings.append(
                f"The image {block.url} will not be seen in Gmail or Outlook. Use PNG, JPEG or GIF."
            )
    return warnings


def _undrawn(url: str) -> bool:
    return url.partition("?")[0].partition("#")[0].lower().endswith(_UNDRAWN)


def _size_warnings(size: int) -> list[str]:
    if size < _NEAR_THE_CUT:
        return []
    return [
        f"The HTML has {size // 1000} KB. Gmail cuts letters at {GMAIL_CUTS_AT // 1000} KB, and the link to "
        "unsubscribe is what falls off. Make the letter shorter."
    ]
