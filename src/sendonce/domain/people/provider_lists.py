"""A provider's own list of addresses that it does not write to, as SES keeps one for each account and region.

Ours is the source of truth, theirs a second fence. What either learns of bounces and complaints goes to the
other. What they forget is not forgotten here; what a person allows again here is allowed there, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sendonce.domain.people.suppressions import Suppression, SuppressionReason

SHARED = (SuppressionReason.BOUNCE, SuppressionReason.COMPLAINT)
"""The reasons that a provider's list knows."""
LIFTED = "suppression.lifted"
"""The outbox's topic for addresses that a person allowed again."""
OVERLAP = timedelta(hours=1)
"""Their clock is not ours, and their list may lag: so much of it is read again each time."""
SETTLED_AFTER = timedelta(minutes=5)
"""Younger suppressions wait for the next time: one of a longer transaction may still come in before them."""


class ListedAddress(NamedTuple):
    address: str
    reason: SuppressionReason


class SyncCursor(NamedTuple):
    """How far a list was read, and how far ours was told to it: up to a time, and a key of that time."""

    theirs_from: datetime | None = None
    ours_from: datetime | None = None
    ours_key: str = ""


@dataclass(slots=True)
class SyncReport:
    """What one round did with a list, or would have done."""

    provider: str
    read: int = 0
    taken: int = 0
    unreadable: int = 0
    told: int = 0
    lifted: int = 0


def note_of(provider: str) -> str:
    """Where a suppression came from."""
    return f"on the list of {provider}"


def is_news_to(provider: str, suppression: Suppression) -> bool:
    """Whether a list does not know this address yet, as far as we can tell. Erased people have none."""
    return suppression.address is not None and suppression.note != note_of(provider)
