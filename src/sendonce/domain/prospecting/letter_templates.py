"""Letters from chosen lines. The template is the usual choice: the same brief always makes the same letter.

Also what every letter has around its own words: the greeting, the signature, the notices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.letter_checks import Draft
from sendonce.domain.prospecting.letter_lines import BENEFITS, LetterLines, lines_for

_WORDS = {
    "ru": {"hello": "Здравствуйте!", "hello_name": "Здравствуйте, {name}!", "regards": "С уважением"},
    "en": {"hello": "Hello!", "hello_name": "Hello {name},", "regards": "Kind regards"},
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Ids of lines. ``points`` may leave some out; benefits stand in its order, texts in the offer's."""

    subject: str
    opening: str
    remark: str
    points: tuple[str, ...]
    question: str


def usual_choice(lines: LetterLines) -> Choice:
    """The first of each, and all points."""
    return Choice(
        subject=_first(lines.subjects),
        opening=_first(lines.openings),
        remark=_first(lines.remarks),
        points=tuple(lines.points),
        question=_first(lines.questions),
    )


def draft_of(choice: Choice, lines: LetterLines, language: str) -> Draft:
    """The letter's own words."""
    paragraphs = _paragraphs(choice, lines, BENEFITS[language])
    return Draft(lines.subjects[choice.subject], "\n\n".join(filter(None, paragraphs)))


def template_draft(brief: Brief) -> Draft:
    lines = lines_for(brief)
    return draft_of(usual_choice(lines), lines, brief.language)


def letter_text(draft: Draft, brief: Brief) -> str:
    """The whole text, with greeting and signature."""
    say, name, sender = _WORDS[brief.language], brief.contact.name, brief.offer.sender
    hello = say["hello_name"].format(name=name) if name else say["hello"]
    regards = f"{say['regards']},\n{sender}" if sender else say["regards"]
    return "\n\n".join((hello, draft.body, regards))


def with_notices(text: str, notices: Sequence[str]) -> str:
    """The text as it is sent, but for the footer that every message gets."""
    return "\n\n".join((text.rstrip(), "--", *notices))


def _paragraphs(choice: Choice, lines: LetterLines, benefits_are: str) -> Iterator[str]:
    yield f"{lines.openings[choice.opening]} {lines.remarks[choice.remark]}".rstrip()
    first = _first(lines.texts)  # which says what is offered, so it is never left out
    yield "\n".join(text for name, text in lines.texts.items() if name == first or name in choice.points)
    benefits = [lines.benefits[name] for name in choice.points if name in lines.benefits]
    if benefits:
        yield "\n".join((benefits_are, *(f"— {benefit}" for benefit in benefits)))
    yield from lines.fixed
    yield lines.questions[choice.question]


def _first(lines: Mapping[str, str]) -> str:
    return next(iter(lines))
