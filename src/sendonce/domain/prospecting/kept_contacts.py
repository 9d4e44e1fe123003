"""Contacts of a company over all its pages and visits: how sightings merge, and which one is written to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.contacts import Contacts, Email, Phone
from sendonce.domain.prospecting.readings import PageReading


class ContactKind(StrEnum):
    EMAIL = "email"
    PHONE = "phone"


class TakesMail(StrEnum):
    """Whether an address's domain has mail servers. ``unknown``: DNS did not answer; nothing is held back."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Trouble(StrEnum):
    """Why nobody writes to a contact any more."""

    BOUNCED = "bounced"
    OPTED_OUT = "opted_out"


@dataclass(frozen=True, slots=True)
class SeenContact:
    """A contact that a visit saw. ``attributes`` are what pages say beside it, such as an extension."""

    kind: ContactKind
    value: str
    quality: float
    source: str
    source_url: str
    role: str | None = None
    freemail: bool = False
    takes_mail: TakesMail | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What two spellings of one contact have in common: a mailbox's case never matters in practice."""
        return self.value.casefold()


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact as it is kept. The primary one of a kind is the one to use. ``domain`` is the company's."""

    id: str
    tenant_id: TenantId
    company_id: str
    domain: str
    seen: SeenContact
    primary: bool
    trouble: Trouble | None
    created_at: datetime
    last_seen_at: datetime

    @property
    def usable(self) -> bool:
        return self.trouble is None and self.seen.takes_mail is not TakesMail.NO


def merged(known: SeenContact, again: SeenContact) -> SeenContact:
    """One contact of two sightings: the better source, all attributes, the last word of DNS."""
    better = again if again.quality > known.quality else known
    heard = again.takes_mail not in (None, TakesMail.UNKNOWN)
    return replace(
        better,
        takes_mail=again.takes_mail if heard else known.takes_mail or again.takes_mail,
        attributes={**known.attributes, **again.attributes},
    )


def merge_all(seen: Iterable[SeenContact]) -> list[SeenContact]:
    """Each contact once, in the order of their first sightings."""
    found: dict[tuple[ContactKind, str], SeenContact] = {}
    for contact in seen:
        place = contact.kind, contact.key
        found[place] = merged(found[place], contact) if place in found else contact
    return list(found.values())


def primary_of(contacts: Sequence[Contact]) -> Contact | None:
    """Of one company and kind: the one that is primary already, if it can be used; else the best one.

    Contacts come in the order in which they were first seen.
    """
    usable = [contact for contact in contacts if contact.usable]
    present = next((contact for contact in usable if contact.primary), None)
    return present or max(usable, key=lambda contact: contact.seen.quality, default=None)


def contacts_on(pages: Iterable[PageReading], own_domains: frozenset[str]) -> list[SeenContact]:
    """All contacts of a site, best first; among equals those at the company's own domain, then by page."""
    seen = merge_all(contact for page in pages for contact in _on_page(page.url, page.contacts))
    return sorted(seen, key=lambda it: (-it.quality, not _is_at(it.value, own_domains)))


def _on_page(url: str, contacts: Contacts) -> Iterator[SeenContact]:
    yield from (_seen_email(email, url) for email in contacts.emails)
    yield from (_seen_phone(phone, url) for phone in contacts.phones)


def _seen_email(email: Email, url: str) -> SeenContact:
    kind = ContactKind.EMAIL
    return SeenContact(kind, email.value, email.quality, email.source, url, email.role, email.freemail)


def _seen_phone(phone: Phone, url: str) -> SeenContact:
    beside = {"extension": phone.extension} if phone.extension else {}
    return SeenContact(ContactKind.PHONE, phone.value, phone.quality, phone.source, url, attributes=beside)


def _is_at(value: str, domains: frozenset[str]) -> bool:
    host = value.rpartition("@")[2]
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
