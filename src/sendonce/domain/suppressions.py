"""Suppression: an address that must not be written to, by one tenant or by anybody. Deny wins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

EVERYBODY = "*"
"""The scope of a global suppression, in place of a tenant."""


class SuppressionReason(StrEnum):
    UNSUBSCRIBED = "unsubscribed"
    BOUNCE = "bounce"
    COMPLAINT = "complaint"
    MANUAL = "manual"


GRAVITY = {
    SuppressionReason.UNSUBSCRIBED: 0,
    SuppressionReason.BOUNCE: 1,
    SuppressionReason.COMPLAINT: 2,
    SuppressionReason.MANUAL: 3,
}
"""Undo takes back an unsubscription only, so what is worse must win, in whatever order they come."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """``address`` is None once the person asked to be erased; the key still denies."""

    key: str
    scope: str
    address: str | None
    reason: SuppressionReason
    note: str | None
    created_at: datetime
