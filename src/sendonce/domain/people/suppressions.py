"""Suppression: an address that must not be written to, by one tenant or by anybody. Deny wins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId

EVERYBODY = TenantId("*")
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
    """``address`` is None once the person asked to be erased; the key still denies.

    ``job_id`` names the letter whose link was clicked, if it came about so and for no other reason since.
    """

    key: str
    scope: TenantId
    address: str | None
    reason: SuppressionReason
    note: str | None
    created_at: datetime
    job_id: str | None = None


EXPORTED = ("address", "scope", "reason", "note", "created_at")
"""The titles of an export. An import knows it by them."""


@dataclass(frozen=True, slots=True)
class NewSuppression:
    scope: TenantId
    address: Address
    reason: SuppressionReason
    note: str | None = None


BY_LETTER = "job "
"""The note of a suppression that a letter's link made begins so, and goes on with the job's id."""

RECIPIENT = "the recipient"
"""Who undoes an unsubscription, in the audit log."""

UNDO_WINDOW = timedelta(hours=1)


def may_undo(suppression: Suppression, job_id: str, now: datetime) -> bool:
    """Whether the recipient of this letter may take the suppression back.

    Old letters are forwarded and leak: only the one whose link was clicked counts, and only for a while.
    """
    own = suppression.reason == SuppressionReason.UNSUBSCRIBED and suppression.job_id == job_id
    return own and now - suppression.created_at <= UNDO_WINDOW
