"""Accept a letter from a file: refuse at once what could never be sent."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.moments import read_moment
from sendonce.domain.mailouts.letter_files import LetterFile, WrittenLetter
from sendonce.domain.mailouts.mailouts import NewMailout
from sendonce.domain.mailouts.rendering import compose
from sendonce.errors import BadInput, RefusedByRule, Unsendable
from sendonce.flows.mailouts.preflight import advise, check_letter


def accept_file(file: LetterFile, settings: MessageSettings, zone: ZoneInfo, now: datetime) -> WrittenLetter:
    """Raises Unsendable for a letter that could not be built, RefusedByRule for a time that has passed."""
    composed = compose(file.draft, file.hosted)
    try:
        check_letter(composed.letter, settings, "new")
    except BadInput as exc:
        raise Unsendable(f"{file.path} cannot be sent as it is: {exc}") from exc
    warnings = [*composed.warnings, *file.warnings, *advise(composed.letter)]
    wished = file.draft.send_at
    send_at = _wished_time(wished, zone, now, warnings) if wished else None
    new = NewMailout(file.name, "file", composed.letter, warnings=tuple(warnings), send_at=send_at)
    return WrittenLetter(new, file.assets)


def _wished_time(text: str, zone: ZoneInfo, now: datetime, warnings: list[str]) -> datetime:
    """How a doubtful hour was understood is among the warnings."""
    try:
        written = read_moment(text, zone)
    except BadInput as exc:
        raise BadInput(f"The front matter's send_at: {exc}") from exc
    if written.at <= now:
        raise RefusedByRule(
            f"The front matter's send_at, {text}, has passed. Write another, or leave it out."
        )
    warnings += filter(None, [written.note])
    return written.at
