"""Contacts of a company: what a page says, how far to trust it, and which one is first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sendonce.domain.people.mailboxes import is_free_mail, is_role


class Source(StrEnum):
    """Where on a page a contact was written."""

    MAILTO = "mailto"
    TEL = "tel"
    JSON_LD = "json_ld"
    MICRODATA = "microdata"
    CLOUDFLARE = "cloudflare"
    TEXT = "text"
    MESSENGER = "messenger"
    OBFUSCATED = "obfuscated"
    ATTRIBUTE = "attribute"
    SCRIPT = "script"
    META = "meta"


# How sure it is that this is the company's contact and that it was read right.
EMAIL_QUALITY = {
    Source.MAILTO: 1.0,
    Source.JSON_LD: 0.95,
    Source.MICRODATA: 0.95,
    Source.CLOUDFLARE: 0.9,
    Source.TEXT: 0.8,
    Source.OBFUSCATED: 0.75,
    Source.ATTRIBUTE: 0.7,
    Source.SCRIPT: 0.7,
    Source.META: 0.6,
}
PHONE_QUALITY = {
    Source.TEL: 0.9,
    Source.JSON_LD: 0.85,
    Source.MICRODATA: 0.85,
    Source.MESSENGER: 0.7,
    Source.TEXT: 0.6,
}


@dataclass(frozen=True, slots=True)
class Email:
    """``role`` is "role" for an office's mailbox, "personal" for a person's."""

    value: str
    quality: float
    source: Source
    role: str
    freemail: bool
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Phone:
    """``value`` in E.164."""

    value: str
    quality: float
    source: Source
    extension: str | None = None
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Contacts:
    emails: list[Email] = field(default_factory=list)
    phones: list[Phone] = field(default_factory=list)
    inn: list[str] = field(default_factory=list)
    ogrn: list[str] = field(default_factory=list)


def email_contact(address: str, source: Source) -> Email:
    local, _, domain = address.rpartition("@")
    of_office = is_role(local) or local == domain.partition(".")[0]
    role = "role" if of_office else "personal"
    return Email(address, EMAIL_QUALITY[source], source, role, is_free_mail(domain))


def phone_contact(number: str, extension: str | None, source: Source) -> Phone:
    return Phone(number, PHONE_QUALITY[source], source, extension)


def ranked_emails(found: Iterable[Email]) -> list[Email]:
    """Each address once, with its best source; the best one first, then by their order on the page."""
    best: dict[str, Email] = {}
    for email in found:
        known = best.get(email.value)
        if known is None or known.quality < email.quality:
            best[email.value] = email
    ranked = sorted(best.values(), key=lambda email: -email.quality)
    return [replace(email, primary=True) for email in ranked[:1]] + ranked[1:]


def ranked_phones(found: Iterable[Phone]) -> list[Phone]:
    """The same for numbers. An extension that one source knows belongs to the number of the others, too."""
    best: dict[str, Phone] = {}
    for phone in found:
        known = best.get(phone.value)
        extension = phone.extension or (known.extension if known else None)
        if known is None or known.quality < phone.quality:
            known = phone
        best[phone.value] = known if known.extension == extension else replace(known, extension=extension)
    ranked = sorted(best.values(), key=lambda phone: -phone.quality)
    return [replace(phone, primary=True) for phone in ranked[:1]] + ranked[1:]
