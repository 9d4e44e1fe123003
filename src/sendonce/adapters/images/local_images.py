"""Images that lie beside a letter's file: they are taken along, and served by us.

Only files in the letter's own folder and below it: a letter from a stranger must not publish what else
lies on this disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from sendonce.adapters.images.copies import MOST_BYTES, ImageCopy, checked_image
from sendonce.domain.mailouts.assets import Asset
from sendonce.domain.mailouts.blocks import Block, Image, files
from sendonce.domain.mailouts.links import is_local
from sendonce.domain.mailouts.rendering.hosting import Hosted


@dataclass(frozen=True, slots=True)
class LocalImages:
    """``hosted`` tells the letter where each will be; ``assets`` are to be kept there."""

    hosted: dict[str, Hosted]
    assets: Sequence[Asset]
    warnings: Sequence[str]


def local_images(folder: Path, blocks: Sequence[Block], base_url: str) -> LocalImages:
    hosted: dict[str, Hosted] = {}
    assets: list[Asset] = []
    warnings: list[str] = []
    images = [file.url for file in files(blocks) if isinstance(file, Image)]
    for name in dict.fromkeys(filter(is_local, images)):
        copy = _read(folder, name)
        warnings += copy.warnings
        if copy.image is not None:
            assets.append(copy.image)
            address = f"{base_url.rstrip('/')}/assets/{copy.image.sha256}"
            hosted[name] = Hosted(address, copy.image.width)
    return LocalImages(hosted, assets, warnings)


def _read(folder: Path, name: str) -> ImageCopy:
    shown = repr(name[:80])
    try:
        file = (folder / unquote(name)).resolve(strict=True)
        if not file.is_relative_to(folder.resolve()) or not file.is_file():
            return ImageCopy(None, (f"The image {shown} is left out: it is not in the letter's folder.",))
        if file.stat().st_size > MOST_BYTES:
            return ImageCopy(None, (f"The image {shown} is left out: it has more than 5 MB.",))
        content = file.read_bytes()
    except (OSError, ValueError) as exc:
        why = getattr(exc, "strerror", None) or "its name cannot be a file's"
        return ImageCopy(None, (f"The image {shown} is left out: {why}.",))
    return checked_image(content, shown)
