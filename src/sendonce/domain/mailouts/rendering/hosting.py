"""Where the files of a letter are found by its readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sendonce.domain.mailouts.blocks import Image, LinkCard


class Hosted(NamedTuple):
    """A copy of a file at an address that stays. ``width`` is that of an image, in pixels."""

    url: str
    width: int | None = None


class Hosting:
    """Answers where an image or a file is: at its copy if there is one, else at its own address."""

    def __init__(self, copies: Mapping[str, Hosted]) -> None:
        self._copies = copies

    def __contains__(self, url: str) -> bool:
        return url in self._copies

    def place(self, file: Image | LinkCard) -> Hosted | None:
        """None for a file that expires and was not copied: better no link than a dead one."""
        copy = self._copies.get(file.url)
        if copy is not None:
            return copy
        return None if file.expires else Hosted(file.url)
