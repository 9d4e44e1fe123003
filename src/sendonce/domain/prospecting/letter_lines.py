"""The lines that a letter may be made of: ours, the offer's own, and plain facts about the company.

Whoever chooses among them, the template or a model, can say nothing else. So every choice has to be a letter
that the owner of the offer would sign: lines do not refer to each other, what may not be left out is no
choice, and an offer's paragraphs keep their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sendonce.domain.people.offers import Offer
from sendonce.domain.prospecting.briefs import Brief, CompanyBrief
from sendonce.domain.prospecting.letter_words import telling_stems

LONGEST_SUBJECT = 100
NONE = "none"
"""The id of saying nothing."""

_WORDS = {
    "ru": {
        "subject": {
            "offer_for": "{offer}: предложение для {company}",
            "offer": "{offer}",
            "question_to": "{offer}: вопрос к {company}",
        },
        "opening": {
            "useful": "Пишем вам, потому что наше предложение может быть полезно {company}{place}.",
            "offer": "У нас есть предложение для {company}{place}.",
            "together": "Хотим предложить сотрудничество {company}{place}.",
        },
        "question": {
            "reply": "Если это вам интересно, ответьте на это письмо: расскажем подробнее и обсудим вашу "
            "задачу.",
            "details": "Прислать вам подробности? Достаточно ответить на это письмо.",
            "person": "Подскажите, пожалуйста, с кем в вашей компании лучше это обсудить?",
            "talk": "Удобно ли вам обсудить это в ближайшие дни? Ответьте на это письмо, и договоримся о "
            "времени.",
            "interest": "Интересно ли вам такое предложение? Будем рады короткому ответу.",
        },
    },
    "en": {
        "subject": {
            "offer_for": "{offer}: an offer for {company}",
            "offer": "{offer}",
            "question_to": "{offer}: a question for {company}",
        },
        "opening": {
            "useful": "We are writing to you because our offer may be useful to {company}{place}.",
            "offer": "We have an offer for {company}{place}.",
            "together": "We would like to work with {company}{place}.",
        },
        "question": {
            "reply": "If this is interesting for you, please reply to this letter: we would be glad to tell "
            "you more and to discuss your task.",
            "details": "Shall we send you the details? A reply to this letter is enough.",
            "person": "Could you tell us who in your company is the right person to discuss this with?",
            "talk": "Would it suit you to discuss this one of these days? Reply to this letter, and we will "
            "find a time.",
            "interest": "Is this offer of interest to you? We would be glad of a short reply.",
        },
    },
}
_PHRASES = {
    "ru": {
        "company": "компании {name}",
        "your_company": "вашей компании",
        "activity": "Насколько мы знаем, направление вашей работы: {said}.",
        "search": "Нашли вас по запросу «{said}».",
        "fact": "О вас мы прочли: «{said}».",
        "offer": "Предлагаем: {said}.",
        "price": "Стоимость: {said}.",
        "link": "Подробнее: {said}",
    },
    "en": {
        "company": "{name}",
        "your_company": "your company",
        "activity": "As far as we know, your field of work is: {said}.",
        "search": "We found you by this search: “{said}”.",
        "fact": "We read about you: “{said}”.",
        "offer": "We offer: {said}.",
        "price": "Price: {said}.",
        "link": "More details: {said}",
    },
}
BENEFITS = {"ru": "Что это даёт:", "en": "What it gives you:"}
_LEGAL_FORM = re.compile(r"(?:ООО|ОАО|ЗАО|ПАО|АО|ИП|НПО|НПП|ФГУП|ГК|завод|фабрика|компания|группа)\b", re.I)


@dataclass(frozen=True, slots=True)
class LetterLines:
    """Lines by their ids, the usual one first. ``texts`` and ``benefits`` are the points of a letter.

    ``fixed`` stand in every letter: the price and the link.
    """

    subjects: Mapping[str, str]
    openings: Mapping[str, str]
    remarks: Mapping[str, str]
    texts: Mapping[str, str]
    benefits: Mapping[str, str]
    fixed: tuple[str, ...]
    questions: Mapping[str, str]

    @property
    def points(self) -> dict[str, str]:
        return {**self.texts, **self.benefits}

    def of_a_body(self) -> Iterator[str]:
        for lines in (self.openings, self.remarks, self.points, self.questions):
            yield from lines.values()
        yield from self.fixed


def lines_for(brief: Brief) -> LetterLines:
    ours, say = _WORDS[brief.language], _PHRASES[brief.language]
    offer, company = brief.offer, brief.company
    known = bool(company.name or company.domain)
    slots = {
        "offer": _cut(offer.name),
        "company": _company(company, say),
        "place": f" ({company.city})" if company.city and known else "",
    }
    subjects = {name: line.format(**slots) for name, line in ours["subject"].items()}
    fixed = {"price": _bare(offer.price), "link": offer.link}
    return LetterLines(
        subjects={name: line for name, line in subjects.items() if len(line) <= LONGEST_SUBJECT},
        openings={name: line.format(**slots) for name, line in ours["opening"].items()},
        remarks=dict(_remarks(brief, say)),
        texts=_numbered("text", _texts(offer, say)),
        benefits=_numbered("benefit", offer.benefits),
        fixed=tuple(say[name].format(said=said) for name, said in fixed.items() if said),
        questions=_numbered("question", offer.questions) or ours["question"],
    )


def _texts(offer: Offer, say: Mapping[str, str]) -> list[str]:
    """The paragraphs of the offer. What is offered is named, if they do not do so."""
    named = say["offer"].format(said=_bare(offer.name))
    if len(offer.text) <= len(offer.name):
        return [named]
    first, *others = offer.text.splitlines()
    if telling_stems(offer.name).isdisjoint(telling_stems(offer.text)):
        first = f"{named} {first}"
    return [first, *others]


def _remarks(brief: Brief, say: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What a letter may say of the company, each from one kept fact."""
    company, offer = brief.company, brief.offer
    if company.activity:
        yield "activity", say["activity"].format(said=_inside(company.activity))
    if company.found_by:
        yield "search", say["search"].format(said=company.found_by)
    about = telling_stems(" ".join((offer.name, offer.text, company.activity, company.found_by)))
    facts = (fact for fact in company.facts if not about.isdisjoint(telling_stems(fact)))
    yield from _numbered("fact", (say["fact"].format(said=fact) for fact in facts)).items()
    yield NONE, ""


def _company(company: CompanyBrief, say: Mapping[str, str]) -> str:
    if not company.name:
        return company.domain or say["your_company"]
    return company.name if _LEGAL_FORM.match(company.name) else say["company"].format(name=company.name)


def _numbered(name: str, lines: Iterable[str]) -> dict[str, str]:
    return {f"{name}{number}": line for number, line in enumerate(lines, 1)}


def _inside(phrase: str) -> str:
    """A phrase as it stands inside a sentence; an abbreviation keeps its capitals."""
    return phrase[0].lower() + phrase[1:] if phrase[1:2].islower() else phrase


def _bare(text: str) -> str:
    return text.rstrip(".!")


def _cut(text: str) -> str:
    text = _bare(text)
    return text if len(text) <= LONGEST_SUBJECT else text[: LONGEST_SUBJECT - 1].rpartition(" ")[0] + "…"
