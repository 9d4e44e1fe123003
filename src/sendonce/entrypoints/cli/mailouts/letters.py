"""sendonce mailout create, update, preview, delete: what happens to a letter before it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sendonce.domain.engine.moments import read_moment, shown_moment
from sendonce.domain.mailouts.mailouts import Mailout, NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import find_mailout, opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.mailouts.mailout_status import next_step, status_words
from sendonce.entrypoints.cli.mailouts.mailouts import MailoutId
from sendonce.entrypoints.cli.output import JsonFlag, print_json, say, say_error
from sendonce.entrypoints.cli.questions import YesFlag, confirm, may_ask, people
from sendonce.entrypoints.views import mailout_view
from sendonce.errors import BadInput, Refused, Unsendable

if TYPE_CHECKING:
    from sendonce.adapters.notion.images import StoredImage
    from sendonce.ports.store import Store
    from sendonce.settings import Settings

LetterFile = Annotated[Path, typer.Argument(help="Markdown or HTML; 'subject: …' in front.")]


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
    read = _from_file(settings, file) if file is not None else _from_page(settings, notion)
    with opened_store(settings, make=True) as store:
        new = _with_twins(store, settings, _with_pictures(store, read))
        mailout = store.mailouts.create(DEFAULT_TENANT, replace(new, draft=draft))
        _print_letter(store, mailout, new, json)


def update(mailout_id: MailoutId, file: LetterFile, json: JsonFlag = False) -> None:
    """Give a mailout that is not sent yet another letter, a mended one. Its id and its time stay."""
    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        if mailout.source_id is not None:
            raise Refused(
                "This mailout is written on a page of Notion: mend it there. It is read when it starts."
            )
        new = _with_twins(store, settings, _with_pictures(store, _from_file(settings, file)))
        if not store.mailouts.replace_letter(mailout.id, new):
            raise _too_late(store, mailout.id, "a letter that has been sent cannot be changed")
        _print_letter(store, find_mailout(store, mailout.id), new, json)


def delete(mailout_id: MailoutId, yes: YesFlag = False, json: JsonFlag = False) -> None:
    """Delete a mailout that is not sent yet: a draft or a ready one."""
    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        if may_ask(yes=yes, json=json):
            confirm(f"Delete «{mailout.name}»?", otherwise="Nothing was deleted.")
        if not store.mailouts.delete(mailout.id):
            raise _too_late(store, mailout.id, "what was sent stays in the books. 'mailout cancel' ends it")
    if json:
        print_json({"id": mailout.id, "status": "deleted"})
    else:
        say(f"Deleted mailout {mailout.id} «{mailout.name}».")


def preview(
    mailout_id: MailoutId,
    email: Annotated[str, typer.Option("--as", help="As this subscriber would get it.")] = "",
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    json: JsonFlag = False,
) -> None:
    """Write the letter as a reader gets it, headers and both parts, to an HTML file. Sends nothing."""
    from sendonce.flows.mailouts.preview_mailout import preview_mailout
    from sendonce.wiring.messages import sample_message_settings
    from sendonce.wiring.notion import letter_sources
    from sendonce.wiring.reports import write_preview

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        letters = sample_message_settings(settings)
        shown = preview_mailout(store, letters, letter_sources(settings, store), mailout, email or None)
    path = write_preview(settings, mailout.id, shown)
    if json:
        print_json({"id": mailout.id, "as": shown.recipient, "subject": shown.subject, "file": str(path)})
    else:
        say(f"«{shown.subject}» as {shown.recipient} would get it: {path}")
    if open_it and not _opened(path):
        say_error("No browser could be opened here: open the file yourself.")


def _opened(path: Path) -> bool:
    import webbrowser

    return webbrowser.open(path.as_uri())


def _too_late(store: Store, mailout_id: str, why: str) -> Refused:
    mailout = find_mailout(store, mailout_id)
    return Refused(f"Mailout {mailout.id} is {status_words(mailout)}: {why}.")


def _print_letter(store: Store, mailout: Mailout, new: NewMailout, json: bool) -> None:
    subject = new.letter.subject if new.letter else None
    if json:
        shown = mailout_view(mailout, store.jobs.books(mailout.id))
        print_json({**shown, "subject": subject, "warnings": new.warnings})
        return
    say(f"Mailout {mailout.id} is {status_words(mailout)}: «{subject or mailout.name}».")
    for warning in new.warnings:
        say(f"  {warning}")
    say(next_step(mailout))


def _with_twins(store: Store, settings: Settings, new: NewMailout) -> NewMailout:
    """The same words went out before: its author may have forgotten."""
    twins = store.mailouts.twins(DEFAULT_TENANT, new.letter) if new.letter else []
    if not twins or twins[0].started_at is None:
        return new
    latest = twins[0]
    when = shown_moment(twins[0].started_at, time_zone(settings))
    count = store.jobs.books(latest.id).sent
    said = (
        f"This letter went out already: mailout {latest.id}, {when}, to {people(count)}. To write to the "
        f"others only: sendonce mailout send ID --except-recipients-of {latest.id}"
    )
    return replace(new, warnings=(*new.warnings, said))


def _with_pictures(store: Store, read: ReadLetter) -> NewMailout:
    for picture in read.pictures:
        store.assets.put(picture.sha256, picture.content_type, picture.content)
    return read.new


class ReadLetter(NamedTuple):
    """A letter from outside, and the pictures that lay beside it."""

    new: NewMailout
    pictures: Sequence[StoredImage] = ()


def _from_file(settings: Settings, file: Path) -> ReadLetter:
    """Raises Unsendable at once for a letter that could never be sent."""
    from sendonce.adapters.sources.html import html_draft
    from sendonce.adapters.sources.local_pictures import local_pictures
    from sendonce.adapters.sources.markdown import markdown_draft
    from sendonce.domain.mailouts.rendering import compose
    from sendonce.flows.mailouts.preflight import advise, check_letter
    from sendonce.wiring.messages import sample_message_settings

    draft = html_draft(_read_text(file)) if _is_html(file) else markdown_draft(_read_text(file), local=True)
    beside = local_pictures(file.parent, draft.blocks, settings.app_base_url)
    composed = compose(draft, beside.hosted)
    try:
        check_letter(composed.letter, sample_message_settings(settings), "new")
    except BadInput as exc:
        raise Unsendable(f"{file} cannot be sent as it is: {exc}") from exc
    warnings = [*composed.warnings, *beside.warnings, *advise(composed.letter)]
    send_at = _wished_time(settings, draft.send_at, warnings) if draft.send_at else None
    new = NewMailout(file.name, "file", composed.letter, warnings=tuple(warnings), send_at=send_at)
    return ReadLetter(new, beside.pictures)


def _is_html(file: Path) -> bool:
    return file.suffix.lower() in (".html", ".htm")


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


def _from_page(settings: Settings, page: str) -> ReadLetter:
    """The page is read when the mailout starts; here it is only seen to be there."""
    from sendonce.adapters.notion.pages import read_letter
    from sendonce.wiring.notion import notion_client, notion_names

    found = read_letter(notion_client(settings), page, notion_names(settings)[0])
    return ReadLetter(NewMailout(found.title or found.subject, "notion", None, source_id=found.id))


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as exc:
        raise BadInput(f"{file} is not UTF-8 text: save it as UTF-8.") from exc
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
