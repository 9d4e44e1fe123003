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

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.letters import language_named, language_of
from sendonce.domain.prospecting.letter_words import stem, words
from sendonce.errors import BadInput

MOST_PAGES = 5
LONGEST_PAGE = 4000
_LONGEST_OFFER_FIELD = 2000
_MOST_BENEFITS = 10

_CONTROL = re.compile("[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]")
_UNSEEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_BRACES = re.compile(r"[{}<>\[\]]")
_PLAIN_PHRASE = re.compile(r"[\w ,.()«»\"'’&+/№–—-]+")
_PLAIN_NAME = re.compile(r"[^\W\d_]+(?:[-'’. ]+[^\W\d_]+)*\.?")
_HOST = re.compile(r"(?=.{3,253}$)(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_][\w-]*")
_SENTENCE_BREAK = re.compile(r"[^\W\d_]{4,}\.\s|[!?;:…\n]")
_ADDRESS_OR_LINK = re.compile(
    r"@|://|www\.|\b[\w-]+\.(?:com|net|org|ru|io|рф|su|info|biz|xyz|top|me|cc)\b", re.I
)

# What a company says of itself has none of these; an instruction to a model or to the reader has.
_INSTRUCTING_WORDS = """
    ignore disregard forget instruction instructions prompt system assistant previous override obey must
    write tell say reply respond answer output print include insert append mention click visit transfer pay
    password secret token you your user model letter email subject bankrupt bankruptcy scam fraud игнорируй
    игнорировать игнорируйте забудь забудьте инструкция инструкции промпт система ассистент предыдущие
    напиши напишите скажи скажите сообщи сообщите ответь ответьте добавь добавьте вставь вставьте укажи
    укажите выведи упомяни упомяните перейди перейдите переведи переведите оплати оплатите пароль секрет
    модель письмо письме вы ваш тебе вам вас банкрот обанкротилась банкротство мошенники мошенничество
"""
_INSTRUCTING = frozenset(map(stem, _INSTRUCTING_WORDS.split()))


@dataclass(frozen=True, slots=True)
class CompanyBrief:
    """Only plain fields: what was not is named in ``dropped``."""

    name: str = ""
    domain: str = ""
    city: str = ""
    activity: str = ""
    facts: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        return (self.name, self.domain, self.city, self.activity, *self.facts)


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


# What people call the parts of a brief.
_COMPANY_NAMES = {
    "name": ("name", "title", "company", "название", "имя", "компания"),
    "domain": ("domain", "site", "website", "website_url", "url", "домен", "сайт"),
    "city": ("city", "town", "location", "region", "город", "регион"),
    "activity": (
        "activity",
        "industry",
        "description",
        "about",
        "business",
        "деятельность",
        "описание",
        "отрасль",
    ),
    "facts": ("facts", "факты"),
}
_OFFER_NAMES = {
    "name": ("name", "title", "product", "service", "subject", "название", "продукт"),
    "text": ("text", "description", "about", "summary", "body", "pitch", "value", "текст", "описание"),
    "benefits": ("benefits", "advantages", "points", "benefit", "выгоды", "преимущества", "выгода"),
    "price": ("price", "cost", "цена", "стоимость"),
    "link": ("link", "url", "site", "website", "landing", "ссылка", "сайт"),
    "email": ("email", "mail", "reply_to", "почта"),
    "phone": ("phone", "tel", "телефон"),
    "sender": ("sender", "from", "signature", "author", "sender_name", "от", "подпись"),
}
_CONTACT_NAMES = {
    "email": ("email", "mail", "address", "value", "почта"),
    "name": ("name", "person", "full_name", "first_name", "имя"),
    "role": ("role", "position", "job", "kind", "должность", "роль"),
}
_PARTS = {"company": "компания", "offer": "оффер", "contact": "контакт", "pages": "страницы"}


def read_brief(given: Mapping[str, Any], language: str = "") -> Brief:
    """A brief as a sensible person writes it: objects or plain strings. Raises BadInput without an offer.

    ``language`` wins over the brief's own; without either it is that of the offer.
    """
    part = {name: given.get(name, given.get(also)) for name, also in _PARTS.items()}
    offer = read_offer(part["offer"])
    wanted = language or _text(given.get("language") or given.get("lang"))
    return Brief(
        company=read_company(part["company"]),
        offer=offer,
        contact=_read_contact(part["contact"]),
        pages=_read_pages(part["pages"]),
        language=language_named(wanted) or language_of(f"{offer.name} {offer.text}"),
    )


def read_offer(given: Any) -> Offer:
    """Raises BadInput for an offer that says nothing, and for one with a placeholder left in it."""
    it = _named(given, _OFFER_NAMES, "text")
    benefits = tuple(filter(None, map(_line, _list(it.get("benefits")))))[:_MOST_BENEFITS]
    text, name = _paragraphs(it.get("text")), _line(it.get("name"))
    offer = Offer(
        name=name or _opening(text) or (benefits[0] if benefits else ""),
        text=text,
        benefits=benefits,
        price=_line(it.get("price")),
        link=_line(it.get("link")),
        email=_line(it.get("email")),
        phone=_line(it.get("phone")),
        sender=_line(it.get("sender")),
    )
    if not offer.name:
        raise BadInput(
            'The brief has no offer: say what is offered, as in {"offer": {"name": "Pump repair", '
            '"text": "We repair pumps at your plant."}, "company": {…}}.'
        )
    for written in offer.texts():
        if found := _BRACES.search(written):
            raise BadInput(
                f"The offer has {found[0]!r} in {written[:60]!r}, which looks like a placeholder that was "
                "left: write the offer out."
            )
    return offer


def read_company(given: Any) -> CompanyBrief:
    it = _named(given, _COMPANY_NAMES, "name")
    dropped: list[str] = []

    def keep(name: str, value: str, *, good: bool) -> str:
        if value and not good:
            dropped.append(name)
        return value if good else ""

    name = _line(it.get("name"))
    domain = _host_of(_line(it.get("domain")))
    city = _line(it.get("city"))
    activity = _line(it.get("activity")).rstrip(".")
    facts = []
    for fact in map(_fact, _list(it.get("facts"))):
        if kept := keep("facts", fact, good=is_plain_phrase(fact, most_words=12)):
            facts.append(kept)
    return CompanyBrief(
        name=keep("name", name, good=is_plain_phrase(name, most_words=10)),
        domain=keep("domain", domain, good=bool(_HOST.fullmatch(domain))),
        city=keep("city", city, good=is_plain_phrase(city, most_words=4)),
        activity=keep("activity", activity, good=is_plain_phrase(activity, most_words=12)),
        facts=tuple(facts),
        dropped=tuple(dict.fromkeys(dropped)),
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


def _read_contact(given: Any) -> ContactBrief:
    it = _named(given, _CONTACT_NAMES, "email" if "@" in str(given) else "name")
    name = _line(it.get("name"))
    capitalised = all(word[0].isupper() for word in name.split())
    is_name = len(name) <= 60 and len(name.split()) <= 3 and capitalised and bool(_PLAIN_NAME.fullmatch(name))
    email = _line(it.get("email"))
    return ContactBrief(
        email=parse_address(email).text if email else "",
        name=name if is_name and is_plain_phrase(name, most_words=3) else "",
        role=_line(it.get("role")),
    )


def _read_pages(given: Any) -> tuple[Page, ...]:
    pages = []
    for page in _list(given)[:MOST_PAGES]:
        it = page if isinstance(page, Mapping) else {"text": page}
        text = next((it[key] for key in ("text", "content", "body", "html", "текст") if it.get(key)), "")
        pages.append(Page(_line(it.get("url")), _text(text)[:LONGEST_PAGE]))
    return tuple(pages)


def _named(given: Any, names: Mapping[str, tuple[str, ...]], otherwise: str) -> dict[str, Any]:
    """The fields of a part under our names; a part that is one string is its field ``otherwise``."""
    if not isinstance(given, Mapping):
        return {otherwise: given}
    lowered = {str(key).strip().casefold(): value for key, value in given.items()}
    return {
        ours: next((lowered[theirs] for theirs in every if lowered.get(theirs)), None)
        for ours, every in names.items()
    }


def _fact(given: Any) -> str:
    """``{"fact": "city", "value": "Kazan", "source": …}`` as the crawler keeps them, or a string."""
    value = given.get("value") or given.get("text") if isinstance(given, Mapping) else given
    return _line(value).rstrip(".")


def _list(given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.values()) if not given.keys() & {"text", "value", "url"} else [given]
    return list(given) if isinstance(given, list | tuple) else [given]


def _text(given: Any) -> str:
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return str(given)[:100_000]
    return ""


def _seen(text: str) -> str:
    return _CONTROL.sub(" ", _UNSEEN.sub("", text))


def _line(given: Any) -> str:
    """One line without what cannot be seen."""
    return " ".join(_seen(_text(given)).split())[:_LONGEST_OFFER_FIELD]


def _paragraphs(given: Any) -> str:
    lines = (" ".join(line.split()) for line in _seen(_text(given)).split("\n"))
    return "\n".join(line for line in lines if line)[:_LONGEST_OFFER_FIELD]


def _opening(text: str) -> str:
    """The first words of an offer that has no name."""
    first = re.split(r"[.!?\n]", text, maxsplit=1)[0].strip()
    return first if len(first) <= 70 else first[:70].rpartition(" ")[0]


def _host_of(value: str) -> str:
    host = re.sub(r"^\w+://", "", value).partition("/")[0].partition(":")[0]
    return host.removeprefix("www.").lower()
