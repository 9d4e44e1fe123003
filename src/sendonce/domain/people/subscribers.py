"""Subscribers: people on an opt-in list. A local opt-out is never undone by an import."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId

DEFAULT_TENANT = TenantId("default")


class SubscriberStatus(StrEnum):
    """From who may yet be written to, down to who may not."""

    PENDING = "pending"  # asked for letters, and has not confirmed it yet
    ACTIVE = "active"
    BOUNCED = "bounced"
    UNSUBSCRIBED = "unsubscribed"


OPTED_OUT = frozenset({SubscriberStatus.BOUNCED, SubscriberStatus.UNSUBSCRIBED})

EXPORTED = ("email", "name", "status", "status_updated_at", "created_at")
"""The titles that every export of ours begins with. An import knows it by them."""

CONSENT = "consent"
"""The column of an export that comes next; the attributes follow. Older exports have none."""

REJECTED = ("line", "reason")
"""The titles that a file of rejected lines begins with; those of the list follow."""

_ATTRIBUTE = "attribute "


def attribute_title(name: str) -> str:
    """What the column of an attribute is called in an export: no two columns have one title."""
    return _ATTRIBUTE + name if name in (*EXPORTED, CONSENT) else name


def attribute_of(title: str) -> str:
    """The attribute whose ``attribute_title`` it is."""
    return title.removeprefix(_ATTRIBUTE)


@dataclass(frozen=True, slots=True)
class NewSubscriber:
    """``consent`` is when and how the person agreed, in the words of whoever adds them."""

    address: Address
    name: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    consent: str | None = None


@dataclass(frozen=True, slots=True)
class Subscriber:
    id: str
    tenant_id: TenantId
    email: str
    name: str | None
    attributes: dict[str, str]
    status: SubscriberStatus
    bounce_type: str | None
    bounce_subtype: str | None
    status_updated_at: datetime | None
    created_at: datetime
    consent: str | None = None


class Addition(StrEnum):
    """What became of adding one person."""

    ADDED = "added"
    KNOWN = "known"  # was active already; name and consent are noted
    BACK = "back"  # had left, may be written to again, and agreed anew
    SUPPRESSED = "suppressed"
    LEFT = "left"  # had left, and nobody says that they agreed anew

    @property
    def refused(self) -> bool:
        return self in (Addition.SUPPRESSED, Addition.LEFT)


def addition_of(known: SubscriberStatus | None, *, suppressed: bool, consent: bool) -> Addition:
    """An opt-out stays an opt-out, unless it was lifted on purpose and there is word of a new consent."""
    if suppressed:
        return Addition.SUPPRESSED
    if known in (None, SubscriberStatus.PENDING):
        return Addition.ADDED
    if known == SubscriberStatus.ACTIVE:
        return Addition.KNOWN
    return Addition.BACK if consent else Addition.LEFT


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """``unsubscribed`` and ``bounced`` are people of whom the list says so, among the former three.

    ``deactivated`` are those of them who were active here until now.
    """

    inserted: int = 0
    updated: int = 0
    unchanged: int = 0
    unsubscribed: int = 0
    bounced: int = 0
    deactivated: int = 0

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class BadRow(NamedTuple):
    """A line that was not imported.

    ``raw`` is shortened, with its unprintable characters escaped. ``cells`` are those of the record, or its
    text in the first where it could not be cut into cells, so that it can be mended and imported again.
    """

    line: int
    raw: str
    reason: str
    cells: tuple[str, ...] = ()
