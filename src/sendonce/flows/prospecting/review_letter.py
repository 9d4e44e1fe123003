"""Review a written letter: approve it, reject it, or put it into other words."""

from __future__ import annotations

from dataclasses import asdict

from sendonce.domain.engine.ids import whole_id
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.briefs import brief_from
from sendonce.domain.prospecting.letter_checks import Draft, LetterCheck, check_draft
from sendonce.domain.prospecting.letter_lines import LONGEST_SUBJECT
from sendonce.domain.prospecting.written_letters import OPEN, LetterStatus, WrittenLetter
from sendonce.errors import BadInput, NotFound, Overtaken, RefusedByRule
from sendonce.ports.prospecting import ProspectingStore, WrittenLetters

_LONGEST_TEXT = 20_000


def find_letter(letters: WrittenLetters, tenant_id: TenantId, name: str) -> WrittenLetter:
    """By the beginning of its id. Raises NotFound, and BadInput where several begin so."""
    letter_id = whole_id("letter", name, lambda prefix, limit: letters.with_prefix(tenant_id, prefix, limit))
    found = letters.get(tenant_id, letter_id)
    if found is None:
        raise NotFound(f"There is no letter {name!r}: 'sendonce letters list' shows those that there are.")
    return found


def approve_letter(letters: WrittenLetters, letter: WrittenLetter, actor: str) -> None:
    """Raises RefusedByRule for one that cannot be sent any more."""
    _require_open(letter)
    if letter.unfit:
        raise RefusedByRule(f"Letter {letter.id} cannot be approved: {letter.unfit}.")
    _review(letters, letter, LetterStatus.APPROVED, actor, None)


def reject_letter(
    store: ProspectingStore, letter: WrittenLetter, actor: str, note: str | None = None
) -> None:
    """One that is planned is taken back, which is final. Raises RefusedByRule once it has left."""
    if letter.made.status is LetterStatus.PLANNED:
        _take_back(store, letter, f"rejected by {actor}" + (f": {note}" if note else ""))
        return
    _require_open(letter)
    _review(store.written_letters, letter, LetterStatus.REJECTED, actor, note)


def _take_back(store: ProspectingStore, letter: WrittenLetter, reason: str) -> None:
    if letter.job_id is None or letter.dispatch_id is None:
        taken = store.written_letters.skip(letter.tenant_id, letter.id, reason)
    else:
        taken = store.dispatches.take_back(letter.dispatch_id, [letter.job_id], reason) == 1
    if not taken:
        now = store.written_letters.get(letter.tenant_id, letter.id) or letter
        raise RefusedByRule(f"Letter {letter.id} is {now.status}. It cannot be taken back any more.")


def edit_letter(
    letters: WrittenLetters, letter: WrittenLetter, subject: str, text: str, actor: str
) -> list[LetterCheck]:
    """The checks of the new words. They inform: a person may say what no line says, and answers for it.

    Raises BadInput for what cannot be a letter.
    """
    _require_open(letter)
    subject, text = " ".join(subject.split()), text.strip()
    _require_length("subject", subject, LONGEST_SUBJECT)
    _require_length("text", text, _LONGEST_TEXT)
    if "{{" in subject + text:
        raise BadInput("The letter has {{ in it, which looks like a placeholder that was left: write it out.")
    checks = check_draft(Draft(subject, text), brief_from(letter.made.brief))
    kept = [asdict(check) for check in checks]
    if not letters.edit(letter.tenant_id, letter.id, subject, text, kept, actor):
        raise _overtaken(letter)
    return checks


def _review(
    letters: WrittenLetters, letter: WrittenLetter, verdict: LetterStatus, actor: str, note: str | None
) -> None:
    if not letters.review(letter.tenant_id, letter.id, verdict, actor, note):
        raise _overtaken(letter)


def _require_length(what: str, written: str, most: int) -> None:
    if not 0 < len(written) <= most:
        raise BadInput(f"The {what} has {len(written)} characters: write at least one, and at most {most}.")


def _require_open(letter: WrittenLetter) -> None:
    if letter.made.status not in OPEN:
        skipped = letter.made.status is LetterStatus.SKIPPED
        why = f": {letter.made.note}" if skipped and letter.made.note else ""
        raise RefusedByRule(f"Letter {letter.id} is {letter.status}{why}. It cannot be changed any more.")


def _overtaken(letter: WrittenLetter) -> Overtaken:
    return Overtaken(f"Letter {letter.id} was planned or skipped meanwhile: nothing was changed.")
