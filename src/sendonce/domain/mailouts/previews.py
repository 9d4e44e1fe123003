"""A letter as one reader would get it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preview:
    """``html`` is empty for a letter that is plain text only."""

    recipient: str
    subject: str
    headers: tuple[tuple[str, str], ...]
    text: str
    html: str
