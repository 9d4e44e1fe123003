"""The brief of a letter: the company, the offer, the contact, and pages of the company's site.

The offer is ours and is believed. What is said of the company comes from its site, so a field counts only if
it is *plain*: a short phrase, with nothing in it that could be an instruction, a link or a whole sentence.
Pages are data: the model may look at them to choose what of the offer fits, and nothing of them reaches a
letter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sendonce.domain.prospecting.letter_words import stem, words

_PLAIN_PHRASE = re.compile(r"[\w ,.()«»\"'’&+/№–—-]+")
_SENTENCE_BREAK = re.compile(r"[^\W\d_]{4,}\.\s|[!?;:…\n]")
_ADDRESS_OR_LINK = re.compile(
    r"@|://|www\.|\b[\w-]+\.(?:com|net|org|ru|io|рф|su|info|biz|xyz|top|me|cc)\b", re.I
)

# What a company says of itself has none of these; an instruction to a model or to the reader has.
_INSTRUCTING_WORDS = """
    ignore disregard forget instruction instructions prompt assistant previous override obey must write
    tell say reply respond include insert append mention click transfer password secret you your bankrupt
    bankruptcy scam fraud игнорируй игнорировать игнорируйте забудь забудьте инструкция инструкции промпт
    ассистент предыдущие напиши напишите скажи скажите сообщи сообщите ответь ответьте добавь добавьте
    вставь вставьте укажи укажите выведи упомяни упомяните перейди перейдите переведи переведите оплати
    оплатите пароль секрет вы ваш тебе вам вас банкрот обанкротилась банкротство мошенники мошенничество
"""
_INSTRUCTING = frozenset(map(stem, _INSTRUCTING_WORDS.split()))


@dataclass(frozen=True, slots=True)
class CompanyBrief:
    """Only plain fields: what was not is named in ``dropped``. ``found_by`` is our own search."""

    name: str = ""
    domain: str = ""
    city: str = ""
    activity: str = ""
    facts: tuple[str, ...] = ()
    found_by: str = ""
    dropped: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        return (self.name, self.domain, self.city, self.activity, self.found_by, *self.facts)


@dataclass(frozen=True, slots=True)
class Offer:
    """What is offered, in its owner's words. ``sender`` signs the letter."""

    name: str
    text: str = ""
    benefits: tuple[str, ...] = ()
    price: str = ""
    link: str = ""
    email: str = ""
    phone: str = ""
    sender: str = ""

    def texts(self) -> tuple[str, ...]:
        own = (
            self.name,
            self.text,
            *self.benefits,
            self.price,
            self.link,
            self.email,
            self.phone,
            self.sender,
        )
        return tuple(text for text in own if text)


@dataclass(frozen=True, slots=True)
class ContactBrief:
    """The model never sees it: the greeting is ours."""

    email: str = ""
    name: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Brief:
    company: CompanyBrief
    offer: Offer
    contact: ContactBrief = field(default_factory=ContactBrief)
    pages: tuple[Page, ...] = ()
    language: str = "ru"

    def trusted(self) -> tuple[str, ...]:
        """The texts that a letter may draw on."""
        return tuple(text for text in (*self.offer.texts(), *self.company.texts()) if text)

    @property
    def hash(self) -> str:
        """The same for the same brief, whichever way it was written down."""
        canonical = json.dumps(asdict(self), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def brief_from(kept: Mapping[str, Any]) -> Brief:
    """A brief as it was kept with its letter."""
    company, offer = dict(kept["company"]), dict(kept["offer"])
    for name in ("facts", "dropped"):
        company[name] = tuple(company[name])
    offer["benefits"] = tuple(offer["benefits"])
    return Brief(
        company=CompanyBrief(**company),
        offer=Offer(**offer),
        contact=ContactBrief(**kept["contact"]),
        pages=tuple(Page(**page) for page in kept["pages"]),
        language=kept["language"],
    )


def is_plain_phrase(text: str, *, most_words: int) -> bool:
    """A short phrase about a company, with nothing in it that tells anybody to do anything."""
    found = words(text)
    return (
        0 < len(found) <= most_words
        and len(text) <= 12 * most_words
        and bool(_PLAIN_PHRASE.fullmatch(text))
        and not _SENTENCE_BREAK.search(text)
        and not _ADDRESS_OR_LINK.search(text)
        and _INSTRUCTING.isdisjoint(map(stem, found))
    )
