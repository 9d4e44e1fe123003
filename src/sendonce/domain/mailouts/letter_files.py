"""A letter in a file, as it was read: nothing is checked yet, and nothing kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sendonce.domain.mailouts.assets import Asset
from sendonce.domain.mailouts.blocks import Draft
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.mailouts.rendering.hosting import Hosted


@dataclass(frozen=True, slots=True)
class LetterFile:
    """``assets`` are the images that lie beside it; ``hosted`` tells the letter where each will be."""

    path: str
    name: str
    draft: Draft
    hosted: Mapping[str, Hosted]
    assets: Sequence[Asset]
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class WrittenLetter:
    """A letter that may become a mailout, and the images that are to be kept for it."""

    new: NewMailout
    assets: Sequence[Asset] = ()
