"""Companies: one for each registrable domain that searches found, and what a visit to its site told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.tasks import Task


class CompanyStatus(StrEnum):
    """``new`` waits for a visit to its site. ``duplicate`` takes no part in sending."""

    NEW = "new"
    ENRICHED = "enriched"
    NO_CONTACTS = "no_contacts"
    UNREACHABLE = "unreachable"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class FoundSite:
    """A search result on a site that may be a company's. ``domain`` is registrable, in A-labels."""

    url: str
    domain: str
    title: str
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """``companies`` has the id for each domain: the primary's, where the domain's own is a duplicate."""

    companies: Mapping[str, str]
    created: int


@dataclass(frozen=True, slots=True)
class Fact:
    """What a company's own page says of it, and on which page."""

    fact: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Company:
    """``opt_out`` is whether it may not be written to, for whatever reason."""

    id: str
    tenant_id: TenantId
    domain: str
    name: str
    website_url: str
    language: str | None
    status: CompanyStatus
    opt_out: bool
    opt_out_reason: str | None
    primary_id: str | None
    inn: str | None
    ogrn: str | None
    city: str | None
    facts: Sequence[Fact]
    reason: str | None
    crawled_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FoundBy:
    """A search that found a company."""

    query_id: str
    text: str
    region: str
    direction_id: str


@dataclass(frozen=True, slots=True)
class Visit:
    """A company whose site this worker alone may visit, until its lease ends."""

    task: Task
    company: Company


@dataclass(frozen=True, slots=True)
class Findings:
    """What a visit found. ``name`` is empty where the pages tell none.

    ``moved_to`` is the registrable domain that the home page led to, if it is another one and may be a
    company's; ``website_url`` is then its address there.
    """

    has_contacts: bool
    name: str = ""
    city: str | None = None
    inn: Sequence[str] = ()
    ogrn: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    moved_to: str | None = None
    website_url: str | None = None
    reason: str | None = None


LONGEST_NAME = 200
LONGEST_TEXT = 2_000


def home_of(url: str) -> str:
    """The home page of the site that a canonical URL is on."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def short_name(name: str) -> str:
    """A name as a page tells it: in one line, of sensible length."""
    return readable(name)[:LONGEST_NAME].strip()


def readable(text: str) -> str:
    """Text from the web in one line, without what no database or terminal should meet."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:LONGEST_TEXT]
