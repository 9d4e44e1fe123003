"""Signing up: whoever asks for letters gets one that asks back, and only its link makes them a subscriber.

Anybody may type anybody's address into a form. So its answer tells nobody whether the address is known, and
nobody gets more than a few letters by it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.domain.people.suppressions import SuppressionReason

KIND = "confirmation"
"""The kind of dispatch that a letter of confirmation leaves by."""

PAUSE = timedelta(minutes=10)
DAY = timedelta(days=1)
MOST_A_DAY = 3
"""Letters of confirmation to one mailbox, however its address is spelled."""

GOOD_FOR = timedelta(days=7)
"""How long the link in such a letter confirms."""


@dataclass(frozen=True, slots=True)
class SignUpWish:
    """What somebody typed into a form; ``source`` is where, ``wording`` what they agreed to there."""

    address: Address
    name: str | None
    source: str
    wording: str


@dataclass(frozen=True, slots=True)
class SignUp:
    """A wish that a letter of confirmation goes out for. It is the record of the person's consent."""

    id: str
    tenant_id: TenantId
    email: str
    name: str | None
    source: str
    wording: str
    requested_at: datetime
    confirmed_at: datetime | None = None

    @property
    def consent(self) -> str:
        """When and how the person agreed, in a line."""
        return (
            f"Signed up at {self.source} on {self.requested_at:%Y-%m-%d %H:%M} UTC and confirmed by a link: "
            f"{self.wording}"
        )


class Confirmation(StrEnum):
    """What became of a click on the link."""

    CONFIRMED = "confirmed"
    LATE = "late"  # the link is too old: sign up again
    HELD = "held"  # letters bounced or were complained of: a link cannot lift that


def may_ask(
    known: SubscriberStatus | None,
    denied: Collection[SuppressionReason],
    asked: Sequence[datetime],
    now: datetime,
) -> bool:
    """Whether a letter of confirmation is to go out: ``asked`` are the former ones to this mailbox.

    An unsubscription does not stand in its way, for the person may have changed their mind. A bounce, a
    complaint or a person's word does.
    """
    if known == SubscriberStatus.ACTIVE and not denied:
        return False
    if known == SubscriberStatus.BOUNCED or not may_lift(denied):
        return False
    lately = [moment for moment in asked if now - moment < DAY]
    return len(lately) < MOST_A_DAY and all(now - moment >= PAUSE for moment in lately)


def may_lift(denied: Collection[SuppressionReason]) -> bool:
    """Confirming lifts an unsubscription and nothing else."""
    return set(denied) <= {SuppressionReason.UNSUBSCRIBED}


def confirmation_of(
    sign_up: SignUp,
    known: SubscriberStatus | None,
    denied: Collection[SuppressionReason],
    denied_at: datetime | None,
    now: datetime,
) -> Confirmation:
    """``denied_at`` is when the tenant's own suppression of the person came, if there is one."""
    if sign_up.confirmed_at is None and now - sign_up.requested_at > GOOD_FOR:
        return Confirmation.LATE
    if known == SubscriberStatus.BOUNCED or not may_lift(denied):
        return Confirmation.HELD
    # Who unsubscribed since is not brought back by the old link, whether it was used before or not.
    left_since = denied_at is not None and denied_at > sign_up.requested_at
    used = sign_up.confirmed_at is not None
    return Confirmation.LATE if denied and (used or left_since) else Confirmation.CONFIRMED
