"""Write a letter from a brief: by the model if its letter passes every check, else by the template."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.letter_checks import Draft, LetterCheck, check_draft, passes
from sendonce.domain.prospecting.letter_requests import read_answer, request_for
from sendonce.domain.prospecting.letter_templates import letter_text, template_draft
from sendonce.errors import BadInput, SendonceError
from sendonce.ports.prospecting import LetterModel

log = logging.getLogger(__name__)

_TRIES = 2
_FIELDS_OF_THE_COMPANY = ("activity", "found_by", "city", "name", "domain")


@dataclass(frozen=True, slots=True)
class LetterWritten:
    """``by`` is "llm" or "template"; ``checks`` are those of this very letter.

    ``refused`` says why the model's letter was not taken, empty if it was or nobody asked for one. It quotes
    nothing of what the model said. ``model`` is which one was asked, if any; ``price`` is what it cost,
    whether its letter was taken or not.
    """

    subject: str
    text: str
    language: str
    by: str
    checks: list[LetterCheck]
    model: str | None = None
    price: float = 0.0
    refused: str = ""


@dataclass(frozen=True, slots=True)
class _Tried:
    draft: Draft | None
    checks: list[LetterCheck]
    price: float
    refused: str = ""


def write_letter(brief: Brief, model: LetterModel | None, budget: float = float("inf")) -> LetterWritten:
    """``budget`` is what may still be spent on the model tonight."""
    tried = _ask(brief, model, budget)
    draft, checks = (tried.draft, tried.checks) if tried.draft else _from_template(brief)
    if tried.refused:
        log.info("a letter comes from the template", extra={"fields": {"reason": tried.refused}})
    return LetterWritten(
        subject=draft.subject,
        text=letter_text(draft, brief),
        language=brief.language,
        by="llm" if tried.draft else "template",
        checks=checks,
        model=model.name if model else None,
        price=tried.price,
        refused=tried.refused,
    )


def _from_template(brief: Brief) -> tuple[Draft, list[LetterCheck]]:
    """With all that is said of the company, but for the fields for which the letter fails a check.

    What still fails when nothing is said of the company is the offer's own: its owner said it.
    """
    fullest = _template_without(brief, [])
    if passes(fullest[1]):
        return fullest
    said = [name for name in _FIELDS_OF_THE_COMPANY if getattr(brief.company, name)]
    barest = _template_without(brief, said)
    faults = _failed(barest[1])
    tried = (_template_without(brief, names) for names in _each_alone_then_more(said))
    return next((made for made in tried if _failed(made[1]) <= faults), barest)


def _each_alone_then_more(names: list[str]) -> Iterator[list[str]]:
    yield []
    yield from ([name] for name in names)
    yield from (names[:count] for count in range(2, len(names)))


def _template_without(brief: Brief, names: list[str]) -> tuple[Draft, list[LetterCheck]]:
    less = replace(brief, company=brief.company.without(*names))
    draft = template_draft(less)
    return draft, check_draft(draft, less)


def _failed(checks: list[LetterCheck]) -> set[str]:
    return {check.name for check in checks if not check.ok}


def _ask(brief: Brief, model: LetterModel | None, budget: float) -> _Tried:
    if model is None:
        return _Tried(None, [], 0.0)
    spent, refused, failed = 0.0, "", list[LetterCheck]()
    for _ in range(_TRIES):
        if spent >= budget:
            return _Tried(None, [], spent, refused or "tonight's budget for the model is spent")
        try:
            answer = model.answer(request_for(brief, failed))
            spent += answer.price
            draft = read_answer(answer.content)
        except BadInput:
            return _Tried(None, [], spent, "the model's answer is not the JSON that was asked for")
        except SendonceError as exc:
            return _Tried(None, [], spent, str(exc))
        checks = check_draft(draft, brief)
        if passes(checks):
            return _Tried(draft, checks, spent)
        failed = [check for check in checks if not check.ok]
        refused = "the model's letter failed these checks: " + ", ".join(check.name for check in failed)
    return _Tried(None, [], spent, refused)
