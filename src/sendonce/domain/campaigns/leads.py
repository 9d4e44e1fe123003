"""Leads: people whom a direction may write to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.mailboxes import is_free_mail

MAX_FIELD = 1000


@dataclass(frozen=True, slots=True)
class NewLead:
    """``company_key`` is what colleagues have in common. ``timezone`` is None where it is unknown."""

    address: Address
    name: str | None
    company: str | None
    timezone: str | None
    receiver: str
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def domain(self) -> str:
        return self.address.key.rpartition("@")[2]

    @property
    def company_key(self) -> str:
        """The company's name, else the domain; a mailbox at a free provider is a company of its own."""
        if self.company:
            return " ".join(self.company.casefold().split())
        return self.address.key if is_free_mail(self.domain) else self.domain


@dataclass(frozen=True, slots=True)
class FoundContact:
    """The first address of a company that prospecting found; ``site`` is the company's domain."""

    id: str
    email: str
    role: str | None
    freemail: bool
    company: str
    city: str | None
    site: str
    source_url: str


@dataclass(frozen=True, slots=True)
class Lead:
    """``stopped`` says why nobody writes to it any more, in whatever campaign."""

    id: str
    tenant_id: TenantId
    direction_id: str
    email: str
    name: str | None
    company: str | None
    timezone: str | None
    receiver: str
    fields: Mapping[str, str]
    source: str
    stopped: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LeadCounts:
    """What became of the lines of an import."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
