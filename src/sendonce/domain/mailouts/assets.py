"""Assets: copies of the images of letters, kept under the hash of their content and served by us."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Asset:
    """``width`` and ``height`` are in pixels."""

    sha256: str
    content_type: str
    width: int
    height: int
    content: bytes = field(repr=False)
