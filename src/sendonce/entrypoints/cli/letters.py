"""sendonce mailout create …: letters become mailouts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.mailouts import NewMailout
from sendonce.domain.moments import read_moment
from sendonce.domain.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.mailout_status import next_step, status_words
from sendonce.entrypoints.cli.output import JsonFlag, print_json, say
from sendonce.entrypoints.views import mailout_view
from sendonce.errors import BadInput, Refused, Unsendable

if TYPE_CHECKING:
    from sendonce.settings import Settings


def create(
    file: Annotated[Path | None, typer.Argument(help="Markdown or HTML; 'subject: …' in front.")] = None,
    notion: Annotated[str, typer.Option("--notion", help="A page of Notion: its link or id.")] = "",
    draft: Annotated[bool, typer.Option("--draft", help="Keep it a draft until 'mailout ready'.")] = False,
    json: JsonFlag = False,
) -> None:
    """Make a mailout of a letter in a file or on a page of Notion. Nothing is sent yet."""
    settings = ready_settings()
    if (file is None) == (not notion):
        raise BadInput("Name a file, or a page with --notion.")
    new = _from_file(settings, file) if file is not None else _from_page(settings, notion)
    with opened_store(settings, make=True) as store:
        mailout = store.mailouts.create(DEFAULT_TENANT, replace(new, draft=draft))
        shown = mailout_view(mailout, store.jobs.books(mailout.id))
    subject = new.letter.subject if new.letter else None
    if json:
        print_json({**shown, "subject": subject, "warnings": new.warnings})
        return
    say(f"Mailout {mailout.id} is {status_words(mailout)}: «{subject or mailout.name}».")
    for warning in new.warnings:
        say(f"  {warning}")
    say(next_step(mailout))


def _from_file(settings: Settings, file: Path) -> NewMailout:
    """Raises Unsendable at once for a letter that could never be sent."""
    from sendonce import wiring
    from sendonce.adapters.sources.html import html_draft
    from sendonce.adapters.sources.markdown import markdown_draft
    from sendonce.domain.rendering import compose
    from sendonce.flows.preflight import advise, check_letter

    read = html_draft if file.suffix.lower() in (".html", ".htm") else markdown_draft
    draft = read(_read_text(file))
    composed = compose(draft)
    try:
        check_letter(composed.letter, wiring.sample_message_settings(settings), "new")
    except BadInput as exc:
        raise Unsendable(f"{file} cannot be sent as it is: {exc}") from exc
    warnings = [*composed.warnings, *advise(composed.letter)]
    send_at = _wished_time(settings, draft.send_at, warnings) if draft.send_at else None
    return NewMailout(file.name, "file", composed.letter, warnings=tuple(warnings), send_at=send_at)


def _wished_time(settings: Settings, text: str, warnings: list[str]) -> datetime:
    """Raises Refused for a time that has passed. How a doubtful hour was understood is among the warnings."""
    try:
        written = read_moment(text, time_zone(settings))
    except BadInput as exc:
        raise BadInput(f"The front matter's send_at: {exc}") from exc
    if written.at <= datetime.now(UTC):
        raise Refused(f"The front matter's send_at, {text}, has passed. Write another, or leave it out.")
    warnings += filter(None, [written.note])
    return written.at


def _from_page(settings: Settings, page: str) -> NewMailout:
    """The page is read when the mailout starts; here it is only seen to be there."""
    from sendonce import wiring
    from sendonce.adapters.notion.pages import read_letter

    found = read_letter(wiring.notion_client(settings), page, wiring.notion_names(settings)[0])
    return NewMailout(found.title or found.subject, "notion", None, source_id=found.id)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise BadInput(f"{file} is not UTF-8 text: save it as UTF-8.") from exc
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
