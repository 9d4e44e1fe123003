"""Subscribers: people on an opt-in list. A local opt-out is never undone by an import."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sendonce.domain.addresses import Address

DEFAULT_TENANT = "default"


class SubscriberStatus(StrEnum):
    ACTIVE = "active"
    BOUNCED = "bounced"
    UNSUBSCRIBED = "unsubscribed"


OPTED_OUT = frozenset(SubscriberStatus) - {SubscriberStatus.ACTIVE}

EXPORTED = ("email", "name", "status", "status_updated_at", "created_at")
"""The titles that an export of ours begins with; the attributes follow. An import knows it by them."""

_ATTRIBUTE = "attribute "


def attribute_title(name: str) -> str:
    """What the column of an attribute is called in an export: no two columns have one title."""
    return _ATTRIBUTE + name if name in EXPORTED else name


def attribute_of(title: str) -> str:
    """The attribute whose ``attribute_title`` it is."""
    return title.removeprefix(_ATTRIBUTE)


@dataclass(frozen=True, slots=True)
class NewSubscriber:
    address: Address
    name: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subscriber:
    id: str
    tenant_id: str
    email: str
    name: str | None
    attributes: dict[str, str]
    status: SubscriberStatus
    bounce_type: str | None
    bounce_subtype: str | None
    status_updated_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ImportCounts:
    inserted: int = 0
    updated: int = 0
    unchanged: int = 0

    def __add__(self, other: ImportCounts) -> ImportCounts:
        return ImportCounts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
        )


class BadRow(NamedTuple):
    """A line that was not imported. ``raw`` is shortened, with its unprintable characters escaped."""

    line: int
    raw: str
    reason: str
