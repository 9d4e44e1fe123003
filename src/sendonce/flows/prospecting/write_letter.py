"""Write a letter from a brief: the model chooses its lines; where it does not, the template does."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sendonce.domain.prospecting.briefs import Brief
from sendonce.domain.prospecting.letter_checks import LetterCheck, check_made_draft, passes
from sendonce.domain.prospecting.letter_lines import lines_for
from sendonce.domain.prospecting.letter_requests import read_answer, request_for
from sendonce.domain.prospecting.letter_templates import Choice, draft_of, letter_text, usual_choice
from sendonce.errors import BadInput, SendonceError
from sendonce.ports.prospecting import LetterModel

log = logging.getLogger(__name__)

_TRIES = 2


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
    choice: Choice | None
    price: float = 0.0
    refused: str = ""


def write_letter(brief: Brief, model: LetterModel | None, budget: float = float("inf")) -> LetterWritten:
    """``budget`` is what may still be spent on the model tonight."""
    tried = _ask(brief, model, budget) if model else _Tried(None)
    if tried.refused:
        log.info("a letter comes from the template", extra={"fields": {"reason": tried.refused}})
    lines = lines_for(brief)
    draft = draft_of(tried.choice or usual_choice(lines), lines, brief.language)
    return LetterWritten(
        subject=draft.subject,
        text=letter_text(draft, brief),
        language=brief.language,
        by="llm" if tried.choice else "template",
        checks=check_made_draft(draft, brief),
        model=model.name if model else None,
        price=tried.price,
        refused=tried.refused,
    )


def _ask(brief: Brief, model: LetterModel, budget: float) -> _Tried:
    """The model's choice, if it makes a letter that passes every check."""
    lines, spent, refused = lines_for(brief), 0.0, ""
    for _ in range(_TRIES):
        if spent >= budget:
            return _Tried(None, spent, refused or "tonight's budget for the model is spent")
        try:
            answer = model.answer(request_for(brief, refused))
        except SendonceError as exc:
            return _Tried(None, spent, str(exc))
        spent += answer.price
        try:
            choice = read_answer(answer.content, lines)
        except BadInput as exc:
            refused = f"the model's answer was not taken: {exc}"
            continue
        checks = check_made_draft(draft_of(choice, lines, brief.language), brief)
        if passes(checks):
            return _Tried(choice, spent)
        failed = ", ".join(check.name for check in checks if not check.ok)
        refused = f"the model's letter failed these checks: {failed}"
    return _Tried(None, spent, refused)
