"""sendonce mailout create, update, preview, delete: what happens to a letter before it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.mailouts.mailouts import Mailout, NewMailout
from sendonce.domain.mailouts.status_words import status_words
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import find_mailout, opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.mailouts.mailout_status import next_step
from sendonce.entrypoints.cli.mailouts.mailouts import MailoutId
from sendonce.entrypoints.cli.output import JsonFlag, print_json, say, say_error
from sendonce.entrypoints.cli.questions import YesFlag, confirm, may_ask
from sendonce.entrypoints.views import mailout_view
from sendonce.errors import BadInput

if TYPE_CHECKING:
    from sendonce.ports.store import Store

LetterFile = Annotated[Path, typer.Argument(help="Markdown or HTML; 'subject: …' in front.")]


def create(
    file: Annotated[Path | None, typer.Argument(help="Markdown or HTML; 'subject: …' in front.")] = None,
    notion: Annotated[str, typer.Option("--notion", help="A page of Notion: its link or id.")] = "",
    draft: Annotated[bool, typer.Option("--draft", help="Keep it a draft until 'mailout ready'.")] = False,
    sender: Annotated[
        str | None, typer.Option(help="The address of an added sender; else this installation's own.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make a mailout of a letter in a file or on a page of Notion. Nothing is sent yet."""
    from sendonce.flows.mailouts.create_mailout import create_mailout
    from sendonce.wiring.letters import letter_in_file, letter_on_page

    settings = ready_settings()
    if (file is None) == (not notion):
        raise BadInput("Name a file, or a page with --notion.")
    read = letter_in_file(settings, file) if file is not None else letter_on_page(settings, notion)
    with opened_store(settings, make=True) as store:
        mailout, new = create_mailout(
            store, DEFAULT_TENANT, read, time_zone(settings), draft=draft, sender=sender
        )
        _print_letter(store, mailout, new, json)


def update(mailout_id: MailoutId, file: LetterFile, json: JsonFlag = False) -> None:
    """Give a mailout that is not sent yet another letter, a mended one. Its id and its time stay."""
    from sendonce.flows.mailouts.replace_letter import replace_letter
    from sendonce.wiring.letters import letter_in_file

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        new = replace_letter(store, mailout, lambda: letter_in_file(settings, file), time_zone(settings))
        _print_letter(store, find_mailout(store, mailout.id), new, json)


def delete(mailout_id: MailoutId, yes: YesFlag = False, json: JsonFlag = False) -> None:
    """Delete a mailout that is not sent yet: a draft or a ready one."""
    from sendonce.flows.mailouts.delete_mailout import delete_mailout

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        if may_ask(yes=yes, json=json):
            confirm(f"Delete «{mailout.name}»?", otherwise="Nothing was deleted.")
        delete_mailout(store, mailout)
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
    from sendonce.wiring.senders import sender_settings

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        letters = sample_message_settings(sender_settings(settings, store, mailout.sender_id))
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
