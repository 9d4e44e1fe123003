"""Reading a brief as a sensible person writes it down: objects or plain strings, in English or Russian."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.letters import language_named
from sendonce.domain.people.given_fields import (
    likely_meant,
    line_of,
    listed,
    named,
    refusal_of,
    text_of,
    unknown_fields,
)
from sendonce.domain.people.offers import OFFER_FIELDS, read_offer
from sendonce.domain.prospecting.briefs import Brief, CompanyBrief, ContactBrief, Page, is_plain_phrase
from sendonce.domain.prospecting.letter_words import telling_stems, words
from sendonce.errors import BadInput

MOST_PAGES = 5
LONGEST_PAGE = 4000
_PART_OF_A_HEADING = re.compile(r"\s[—–|•·/-]+\s|[|•:;!?]|\.\s")
_LONGEST_ACTIVITY = 7
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
_CONTACT_NAMES = {
    "email": ("email", "mail", "address", "value", "почта"),
    "name": ("name", "person", "full_name", "first_name", "имя"),
    "role": ("role", "position", "job", "kind", "должность", "роль"),
}
_PARTS = {
    "company": ("company", "компания"),
    "offer": ("offer", "оффер"),
    "contact": ("contact", "контакт"),
    "pages": ("pages", "страницы"),
    "language": ("language", "lang", "язык"),
}


def read_brief(given: Mapping[str, Any], language: str = "") -> Brief:
    """A brief as a sensible person writes it: objects or plain strings.

    Raises BadInput without an offer, and for a part that is something else, such as a number.
    ``language`` wins over the brief's own; without either it is that of the offer.
    """
    part = named(given, _PARTS, "offer")
    for name in ("company", "offer", "contact"):
        _require_text_or_object(f"The brief's {name}", part[name])
    offer = read_offer(part["offer"])
    return Brief(
        company=read_company(part["company"]),
        offer=offer,
        contact=_read_contact(part["contact"]),
        pages=_read_pages(part["pages"]),
        language=language_named(language or text_of(part["language"])) or offer.language,
    )


def _require_text_or_object(what: str, given: Any) -> None:
    if given is not None and not isinstance(given, str | Mapping):
        shown = json.dumps(given, ensure_ascii=False)[:60]
        raise BadInput(f"{what} is {shown}: write a text in quotes, or an object with its fields in braces.")


def unused_fields(given: Mapping[str, Any]) -> list[str]:
    """The fields of a brief that no letter uses: programs write down more than we ask for.

    Raises UnknownField for one that looks like a slip of one that we know.
    """
    part = named(given, _PARTS, "offer")
    of_parts = {"company": _COMPANY_NAMES, "offer": OFFER_FIELDS, "contact": _CONTACT_NAMES}
    every = [("brief", given, _PARTS), *((name, part[name], names) for name, names in of_parts.items())]
    unused = []
    for name, fields, names in every:
        for field in unknown_fields(fields, names):
            if likely_meant(field, names):
                raise refusal_of(field, name if name == "brief" else f"{name} of the brief", names)
            unused.append(field if name == "brief" else f"{name}.{field}")
    return unused


def read_company(given: Any) -> CompanyBrief:
    it = named(given, _COMPANY_NAMES, "name")
    dropped: list[str] = []

    def keep(name: str, value: str, *, good: bool) -> str:
        if value and not good:
            dropped.append(name)
        return value if good else ""

    name = line_of(it.get("name"))
    domain = _host_of(line_of(it.get("domain")))
    city = line_of(it.get("city"))
    activity = line_of(it.get("activity")).rstrip(".")
    found_by = line_of(it.get("found_by"))
    facts = []
    for fact in map(_fact, listed(it.get("facts"))):
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


def activities_in(said: Iterable[str], search: str) -> list[str]:
    """What a company does, in plain phrases of its own that have a word of the search which found it.

    A heading may say anything; one that speaks of what we looked for is likely to say what the company does.
    """
    sought = telling_stems(search)
    parts = (part.strip(" .") for text in said for part in _PART_OF_A_HEADING.split(text))
    plain = (part for part in parts if is_plain_phrase(part, most_words=_LONGEST_ACTIVITY))
    telling = (part for part in plain if len(words(part)) > 1 and not sought.isdisjoint(telling_stems(part)))
    return list(dict.fromkeys(telling))


def _read_contact(given: Any) -> ContactBrief:
    it = named(given, _CONTACT_NAMES, "email" if "@" in str(given) else "name")
    name = line_of(it.get("name"))
    capitalised = all(word[0].isupper() for word in name.split())
    is_name = len(name) <= 60 and len(name.split()) <= 3 and capitalised and bool(_PLAIN_NAME.fullmatch(name))
    email = line_of(it.get("email"))
    return ContactBrief(
        email=parse_address(email).text if email else "",
        name=name if is_name and is_plain_phrase(name, most_words=3) else "",
        role=line_of(it.get("role")),
    )


def _read_pages(given: Any) -> tuple[Page, ...]:
    pages = []
    for page in listed(given)[:MOST_PAGES]:
        _require_text_or_object("A page of the brief", page)
        it = page if isinstance(page, Mapping) else {"text": page}
        text = next((it[key] for key in ("text", "content", "body", "html", "текст") if it.get(key)), "")
        pages.append(Page(line_of(it.get("url")), text_of(text)[:LONGEST_PAGE]))
    return tuple(pages)


def _fact(given: Any) -> str:
    """``{"fact": "city", "value": "Kazan", "source": …}`` as the crawler keeps them, or a string."""
    value = given.get("value") or given.get("text") if isinstance(given, Mapping) else given
    return line_of(value).rstrip(".")


def _host_of(value: str) -> str:
    host = re.sub(r"^\w+://", "", value).partition("/")[0].partition(":")[0]
    return host.removeprefix("www.").lower()
