"""Letters without a model: the same brief always makes the same letter. In Russian and English.

Also what every letter has around its own words, whoever wrote them: the greeting, the signature, the notices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.letter_checks import LONGEST_SUBJECT, Draft

_WORDS = {
    "ru": {
        "hello": "Здравствуйте!",
        "hello_name": "Здравствуйте, {name}!",
        "subject": "{offer}: предложение для {company}",
        "company": "компании {name}",
        "your_company": "вашей компании",
        "about": "Пишем вам по поводу {company}.",
        "in_city": "Пишем вам по поводу {company} ({city}).",
        "found_by": "Нашли вас по запросу «{found_by}».",
        "activity": "Насколько мы знаем, направление вашей работы: {activity}.",
        "offer": "Предлагаем: {offer}.",
        "benefits": "Что это даёт:",
        "price": "Стоимость: {price}.",
        "link": "Подробнее: {link}",
        "ask": "Если это вам интересно, ответьте на это письмо: расскажем подробнее и обсудим вашу задачу.",
        "regards": "С уважением",
    },
    "en": {
        "hello": "Hello!",
        "hello_name": "Hello {name},",
        "subject": "{offer}: an offer for {company}",
        "company": "{name}",
        "your_company": "your company",
        "about": "We are writing to you about {company}.",
        "in_city": "We are writing to you about {company} ({city}).",
        "found_by": "We found you by this search: “{found_by}”.",
        "activity": "As far as we know, your field of work is: {activity}.",
        "offer": "We offer: {offer}.",
        "benefits": "What it gives you:",
        "price": "Price: {price}.",
        "link": "More details: {link}",
        "ask": "If this is interesting for you, please reply to this letter: we would be glad to tell you "
        "more and to discuss your task.",
        "regards": "Kind regards",
    },
}
_LEGAL_FORM = re.compile(r"(?:ООО|ОАО|ЗАО|ПАО|АО|ИП|НПО|НПП|ФГУП|ГК|завод|фабрика|компания|группа)\b", re.I)
_GREETING = re.compile(r"(?:здравствуйте|добр(?:ый|ое)|уважаем|приветствую|hello|hi|dear|good)\b", re.I)
_REGARDS = re.compile(r"^(?:с уважением|kind regards|best regards|regards|sincerely|yours)\b", re.I | re.M)


def template_draft(brief: Brief) -> Draft:
    """The letter's own words, from the brief alone."""
    return Draft(_subject(brief), "\n\n".join(_paragraphs(brief)))


def letter_text(draft: Draft, brief: Brief) -> str:
    """The whole text: greeting and signature are added where the draft has none of its own."""
    say = _WORDS[brief.language]
    parts = [draft.body.strip()]
    if not _GREETING.match(parts[0]):
        name = brief.contact.name
        parts.insert(0, say["hello_name"].format(name=name) if name else say["hello"])
    if not _REGARDS.search(draft.body):
        sender = brief.offer.sender
        parts.append(f"{say['regards']},\n{sender}" if sender else say["regards"])
    return "\n\n".join(parts)


def with_notices(text: str, notices: Sequence[str]) -> str:
    """The text as it is sent, but for the footer that every message gets."""
    return "\n\n".join((text.rstrip(), "--", *notices))


def _subject(brief: Brief) -> str:
    say = _WORDS[brief.language]
    subject = say["subject"].format(offer=_cut(brief.offer.name), company=_company(brief))
    return subject if len(subject) <= LONGEST_SUBJECT else _cut(brief.offer.name)


def _paragraphs(brief: Brief) -> Iterator[str]:
    say, offer, company = _WORDS[brief.language], brief.offer, brief.company
    about = "in_city" if company.city and (company.name or company.domain) else "about"
    opening = [say[about].format(company=_company(brief), city=company.city)]
    if company.activity:
        opening.append(say["activity"].format(activity=_inside(company.activity)))
    elif company.found_by:
        opening.append(say["found_by"].format(found_by=company.found_by))
    yield " ".join(opening)
    yield offer.text if len(offer.text) > len(offer.name) else say["offer"].format(offer=_bare(offer.name))
    if offer.benefits:
        yield "\n".join((say["benefits"], *(f"— {benefit}" for benefit in offer.benefits)))
    if offer.price:
        yield say["price"].format(price=_bare(offer.price))
    if offer.link:
        yield say["link"].format(link=offer.link)
    yield say["ask"]


def _company(brief: Brief) -> str:
    say, name = _WORDS[brief.language], brief.company.name
    if not name:
        return brief.company.domain or say["your_company"]
    return name if _LEGAL_FORM.match(name) else say["company"].format(name=name)


def _inside(phrase: str) -> str:
    """A phrase as it stands inside a sentence; an abbreviation keeps its capitals."""
    return phrase[0].lower() + phrase[1:] if phrase[1:2].islower() else phrase


def _bare(text: str) -> str:
    return text.rstrip(".!")


def _cut(text: str) -> str:
    text = _bare(text)
    return text if len(text) <= LONGEST_SUBJECT else text[: LONGEST_SUBJECT - 1].rpartition(" ")[0] + "…"
