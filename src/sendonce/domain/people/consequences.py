"""What an event means for people: who is written to no more, and whose soft bounces are counted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.events import BounceType, DeliveryEvent, EventKind
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.privacy import is_erased
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason


class AddressedJob(Protocol):
    @property
    def tenant_id(self) -> TenantId: ...
    @property
    def recipient(self) -> str: ...
    @property
    def recipient_key(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Denial:
    """The end of the writing to somebody. ``bounce`` is its type and subtype, if it is one."""

    reason: SuppressionReason
    status: SubscriberStatus
    note: str | None
    bounce: tuple[str, str | None] | None = None


class SoftNews(Enum):
    """What counts for or against a row of soft bounces."""

    CAME_BACK = "came back"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True)
class Consequence:
    """``scope`` is the tenant of a known letter. Nobody can tell which tenant sent an unknown one, so then
    it is everybody."""

    scope: TenantId
    addresses: tuple[Address, ...]
    news: Denial | SoftNews


def consequence_of(event: DeliveryEvent, job: AddressedJob | None) -> Consequence | None:
    """None where nobody is concerned. An erased recipient is suppressed for good already, and a note could
    name the person again."""
    news = _denial(event) or (_soft_news(event) if job is not None else None)
    if news is None or (job is not None and is_erased(job.recipient)):
        return None
    if job is not None:
        return Consequence(job.tenant_id, (Address(job.recipient, job.recipient_key),), news)
    addresses = tuple(event.addressees())
    return Consequence(EVERYBODY, addresses, news) if addresses else None


def _denial(event: DeliveryEvent) -> Denial | None:
    """A permanent bounce and a complaint end the writing, also for a letter that we do not know."""
    note = event.reason or event.bounce_subtype
    if event.kind == EventKind.BOUNCE and event.bounce_type == BounceType.PERMANENT:
        bounce = (str(event.bounce_type), event.bounce_subtype)
        return Denial(SuppressionReason.BOUNCE, SubscriberStatus.BOUNCED, note, bounce)
    if event.kind == EventKind.COMPLAINT:
        return Denial(SuppressionReason.COMPLAINT, SubscriberStatus.UNSUBSCRIBED, note)
    return None


def _soft_news(event: DeliveryEvent) -> SoftNews | None:
    if event.kind == EventKind.DELIVERED:
        return SoftNews.DELIVERED
    if event.kind == EventKind.BOUNCE and event.bounce_type == BounceType.TRANSIENT:
        return SoftNews.CAME_BACK
    return None
