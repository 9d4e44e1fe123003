"""The brief of a letter: the company, the offer, the contact, and pages of the company's site.

The offer is ours and is believed. What is said of the company comes from its site, so a field counts only if
it is *plain*: a short phrase, with nothing in it that could be an instruction, a link or a whole sentence.
Pages are data: the model may look at them to choose which lines of a letter fit, and nothing of them reaches
a letter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sendonce.domain.people.offers import Offer
from sendonce.domain.prospecting.letter_words import stem, words

_PLAIN_PHRASE = re.compile(r"[\w ,.()«»\"'’&+/№–—-]+")
# A full stop with a word after it ends a sentence or makes a host name ("T.me"). It may follow an
# abbreviation, an initial ("А.В. Петров") or stand in a number.
_SENTENCE_BREAK = re.compile(
    r"[!?;:…\n]|(?!(?:им|ул|обл|респ|пос|пгт|st|co|inc|corp|dr|mr|mrs|ms)\.\s)\b[^\W\d_]{2,}\.\s*\w"
    r"|\w[\d_-]\.\s*[^\W\d]|\b(?!г\.\s)(?-i:[a-zа-яё])\.\s*\w|\b\w\.(?:[a-z]{2}|рф\b)",
    re.I,
)
_ADDRESS_OR_LINK = re.compile(r"@|//|www\.|\b(?:собака|dot)\b|\bточка\s+(?:[a-z]{2,}|ру|ком|рф)\b", re.I)
_LONG_NUMBER = re.compile(r"\d(?:[\s().,/–—-]*\d){4}")
# "Звоните", "обращайтесь": an order to the reader, but for these cases of nouns.
_IMPERATIVE = re.compile(r"\w{2,}(?:[ий]те|[ий]тесь)")
_NO_IMPERATIVES = frozenset(["сайте", "защите", "кредите", "граните", "элите", "бисквите"])

# What a company says of itself has none of these; an instruction to a model or to the reader has.
_INSTRUCTING_WORDS = """
    ignore disregard forget instruction instructions prompt assistant previous override obey must write
    tell say reply respond include insert append mention click transfer password secret you your bankrupt
    bankruptcy scam fraud игнорируй игнорировать игнорируйте забудь забудьте инструкция инструкции промпт
    ассистент предыдущие напиши напишите скажи скажите сообщи сообщите ответь ответьте добавь добавьте
    вставь вставьте укажи укажите выведи упомяни упомяните перейди перейдите переведи переведите оплати
    оплатите пароль секрет вы ваш тебе вам вас банкрот обанкротилась банкротство мошенники мошенничество
    visit pay send buy call hacked money usd eur звони плати пиши купи купить заплати рубль рублей деньги
    ты тебя твой дешевле лучше хуже вор воры лжец лжецы дурак дураки пирамида hacker thief thieves liar
    скидка скидки акция бесплатно бесплатный ссылка ссылке ликвидация ликвидации закрылась закрылись должник
    discount free gratis percent liquidation debtor closed процентов
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
    for name in ("benefits", "questions"):
        offer[name] = tuple(offer.get(name, ()))
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
        and not _LONG_NUMBER.search(text)
        and not any(map(_is_imperative, found))
        and _INSTRUCTING.isdisjoint(map(stem, found))
    )


def _is_imperative(word: str) -> bool:
    return bool(_IMPERATIVE.fullmatch(word)) and word not in _NO_IMPERATIVES
