"""Reading a brief as a sensible person writes it down: objects or plain strings, in English or Russian."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.letters import language_named, language_of
from sendonce.domain.prospecting.briefs import Brief, CompanyBrief, ContactBrief, Offer, Page, is_plain_phrase
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
_PART_OF_A_HEADING = re.compile(r"\s[—–|•·/-]+\s|[|•:;!?]|\.\s")
_LONGEST_ACTIVITY = 7
_TELLING_WORD = 5
_BRACES = re.compile(r"[{}<>\[\]]")
_PLAIN_NAME = re.compile(r"[^\W\d_]+(?:[-'’. ]+[^\W\d_]+)*\.?")
_HOST = re.compile(r"(?=.{3,253}$)(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_][\w-]*")

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
    "found_by": ("found_by", "search", "query", "запрос"),
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
    found_by = _line(it.get("found_by"))
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
        found_by=keep("found_by", found_by, good=is_plain_phrase(found_by, most_words=12)),
        dropped=tuple(dict.fromkeys(dropped)),
    )


def activity_in(said: Iterable[str], search: str) -> str:
    """What a company does, in a plain phrase of its own that has a word of the search which found it.

    A heading may say anything; one that speaks of what we looked for is likely to say what the company does.
    """
    sought = {stem(word) for word in words(search) if len(word) >= _TELLING_WORD}
    for phrase in (part.strip(" .") for text in said for part in _PART_OF_A_HEADING.split(text)):
        short = is_plain_phrase(phrase, most_words=_LONGEST_ACTIVITY)
        if short and len(words(phrase)) > 1 and not sought.isdisjoint(map(stem, words(phrase))):
            return phrase
    return ""


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
