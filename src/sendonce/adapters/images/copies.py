"""Copies the images of a letter: Notion's file links die in an hour, and letters are read for years."""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from sendonce.adapters.images.recognition import ImageHead, recognise
from sendonce.adapters.web.public_fetch import LONGEST_FETCH, FetchRefused, FetchRules, Resolve, fetch
from sendonce.domain.mailouts.assets import Asset

# Mail clients load images over phone networks; and a small file can unpack to gigabytes of pixels.
MOST_BYTES = 5 * 1024 * 1024
MOST_PIXELS = 25_000_000
_LARGE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ImageCopy:
    """``image`` is None where there is nothing to show; ``warnings`` are for the author of the letter."""

    image: Asset | None
    warnings: tuple[str, ...] = ()


def copy_image(
    url: str,
    *,
    loopback_too: bool = False,
    seconds: float = LONGEST_FETCH,
    resolve: Resolve | None = None,
    tls: ssl.SSLContext | None = None,
) -> ImageCopy:
    """Fetch and check a head. It never raises for what a stranger's server does.

    ``loopback_too`` is for a stand-in of Notion on this machine (``NotionClient.is_stand_in``).
    """
    name = _shown(url)
    try:
        rules = FetchRules(MOST_BYTES, seconds, loopback_too=loopback_too)
        content = fetch(url, rules, resolve=resolve, tls=tls)
    except FetchRefused as exc:
        return ImageCopy(None, (f"The image {name} is left out: {exc}.",))
    return checked_image(content, name)


def checked_image(content: bytes, name: str) -> ImageCopy:
    """An image that letters may carry, if it is one; ``name`` is for its author."""
    head = recognise(content)
    if head is None:
        reason = "it is not a PNG, JPEG, GIF or WebP head. Put one of these instead."
        return ImageCopy(None, (f"The image {name} is left out: {reason}",))
    if head.width * head.height > MOST_PIXELS:
        size = f"{head.width} × {head.height}"
        return ImageCopy(None, (f"The image {name} is left out: {size} pixels are too many.",))
    sha256 = hashlib.sha256(content).hexdigest()
    stored = Asset(sha256, head.content_type, head.width, head.height, content)
    return ImageCopy(stored, tuple(_doubts(name, head, len(content))))


def _doubts(name: str, head: ImageHead, size: int) -> list[str]:
    found = []
    if head.content_type == "image/webp":
        found.append(f"The image {name} is WebP, which Outlook for Windows does not show: use PNG or JPEG.")
    if size > _LARGE:
        found.append(f"The image {name} is {size / _LARGE:.1f} MB: readers on phones will wait for it.")
    return found


def _shown(url: str) -> str:
    """The host and the file's name: the query of a Notion link is a signature."""
    try:
        parts = urlsplit(url)
        return repr(f"{parts.hostname or ''}/…/{parts.path.rpartition('/')[2]}"[:120])
    except ValueError:
        return repr(url[:60])
