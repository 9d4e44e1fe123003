"""sendonce mailout …"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.jobs import Books, JobState
from sendonce.domain.mailouts import RESTORED, Mailout, MailoutStatus, NewMailout
from sendonce.domain.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import find_mailout, opened_store, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.entrypoints.views import mailout_view
from sendonce.errors import BadInput, Refused, SendonceError, Unavailable, Unsendable

if TYPE_CHECKING:
    from sendonce.adapters.stores.sql import SqlStore
    from sendonce.settings import Settings

group = typer.Typer(name="mailout", help="One letter to all active subscribers, once.", no_args_is_help=True)

MailoutId = Annotated[
    str, typer.Argument(help="The mailout's id, as 'mailout create' printed it, or its page in Notion.")
]


@group.command()
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
    say(_next_step(mailout))


def _next_step(mailout: Mailout) -> str:
    """What to do with it. A page of Notion may have had its mailout for long."""
    if mailout.status == MailoutStatus.DRAFT:
        return f"When it is to be sent, make it ready: sendonce mailout ready {mailout.id}"
    if mailout.status == MailoutStatus.READY:
        return f"Send it: sendonce mailout send {mailout.id}"
    if mailout.status == MailoutStatus.SENDING:
        return f"It was started before. See how it goes: sendonce mailout status {mailout.id}"
    return f"It is over and is not sent again. See what became of it: sendonce mailout report {mailout.id}"


@group.command()
def ready(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """Make a draft ready to be sent. Nothing is sent yet."""
    with opened_store(ready_settings()) as store:
        mailout_id = find_mailout(store, mailout_id).id
        _require(store, mailout_id, store.mailouts.make_ready(mailout_id), "made ready")
        _print_status(store, mailout_id, json)
        if not json:
            say(_next_step(find_mailout(store, mailout_id)))


def _from_file(settings: Settings, file: Path) -> NewMailout:
    """Raises Unsendable at once for a letter that could never be sent."""
    from sendonce import wiring
    from sendonce.adapters.sources.html import html_draft
    from sendonce.adapters.sources.markdown import markdown_draft
    from sendonce.domain.rendering import compose
    from sendonce.flows.preflight import advise, check_letter

    read = html_draft if file.suffix.lower() in (".html", ".htm") else markdown_draft
    composed = compose(read(_read_text(file)))
    try:
        check_letter(composed.letter, wiring.sample_message_settings(settings), "new")
    except BadInput as exc:
        raise Unsendable(f"{file} cannot be sent as it is: {exc}") from exc
    warnings = (*composed.warnings, *advise(composed.letter))
    return NewMailout(file.name, "file", composed.letter, warnings=warnings)


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


@group.command()
def send(
    mailout_id: MailoutId,
    detach: Annotated[bool, typer.Option("--detach", help="Only start it; a worker carries it out.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do all the checks and send nothing.")] = False,
    json: JsonFlag = False,
) -> None:
    """Send a mailout to all active subscribers, once. Works in the foreground until done."""
    from sendonce import wiring
    from sendonce.entrypoints.worker import run_until_mailout_ends
    from sendonce.flows.start_mailout import StartOrder, start_mailout

    settings = ready_settings(quiet=True)
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        mailout_id = mailout.id
        _refuse_if_draft_or_cancelled(mailout, dry_run)
        if not (detach or dry_run):
            wiring.require_for_work(settings, store)
        order = StartOrder(mailout_id, mailout.tenant_id, dry_run)
        if mailout.status != MailoutStatus.SENDING or detach or dry_run:
            report = start_mailout(store, lambda: wiring.message_settings(settings), order)
        if dry_run:
            _print_dry_run(report.planned, mailout_id, json)
            return
        if not detach:
            run_until_mailout_ends(settings, store, mailout_id, silent=json)
        _print_status(store, mailout_id, json)
        if not detach:
            _fail_unless_sent(store, mailout_id)


def _refuse_if_draft_or_cancelled(mailout: Mailout, dry_run: bool) -> None:
    """A draft has a command that helps it. A cancelled mailout is ``sent`` or ``failed``, and that would
    mislead."""
    if mailout.status == MailoutStatus.DRAFT and not dry_run:
        raise Refused(f"Mailout {mailout.id} is still a draft. {_next_step(mailout)}")
    if mailout.cancelled and mailout.status != MailoutStatus.SENDING:
        raise Refused(f"Mailout {mailout.id} is {status_words(mailout)}: create it anew to send it.")


def _print_dry_run(planned: int, mailout_id: str, json: bool) -> None:
    if json:
        print_json({"id": mailout_id, "status": "dry_run", "planned": planned})
    else:
        say(f"Dry run: mailout {mailout_id} would go to {planned} subscribers. Nothing was sent.")


@group.command("test")
def send_test(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """Send a mailout's letter to TEST_EMAILS only, its subject marked. Any number of times."""
    from sendonce import wiring
    from sendonce.entrypoints.worker import run_until_mailout_ends
    from sendonce.flows.start_mailout import StartOrder, start_mailout

    settings = ready_settings(quiet=True)
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        wiring.require_for_work(settings, store)
        order = StartOrder(mailout.id, mailout.tenant_id, test_emails=settings.test_emails)
        report = start_mailout(store, lambda: wiring.message_settings(settings), order)
        run_until_mailout_ends(settings, store, report.mailout.id, silent=json)
        _print_status(store, report.mailout.id, json)
        _fail_unless_sent(store, report.mailout.id)


def _fail_unless_sent(store: SqlStore, mailout_id: str) -> None:
    """A mailout that was stopped before its first letter is back to ready, with the reason; one that was
    interrupted or paused is still sending; one of which no letter was taken has failed."""
    mailout = find_mailout(store, mailout_id)
    if mailout.status == MailoutStatus.FAILED:
        raise SendonceError(f"Nothing was sent of mailout {mailout_id}: {_why_nothing(store, mailout)}.")
    if mailout.status == MailoutStatus.READY:
        raise Refused(mailout.reason or "The mailout was not started.")
    if mailout.paused:
        why = f": {mailout.reason}" if mailout.reason else ""
        raise Refused(f"Mailout {mailout_id} is paused{why}. To go on: sendonce mailout resume {mailout_id}")
    if mailout.status == MailoutStatus.SENDING:
        raise Unavailable(f"Interrupted. To go on where it stopped: sendonce mailout send {mailout_id}")


def _why_nothing(store: SqlStore, mailout: Mailout) -> str:
    """How the letters ended, each way with the reason of one of them."""
    if mailout.cancelled:
        return "it was cancelled"
    books = store.jobs.books(mailout.id)
    ways = []
    for state in (JobState.FAILED, JobState.DEAD, JobState.SKIPPED):
        for job in store.jobs.list(states=[state], mailout_id=mailout.id, limit=1):
            # A server's reply may have several lines, and characters that a terminal would obey.
            words = (job.reason or job.code or "no reason given").split()
            why = "".join(c for c in " ".join(words) if c.isprintable())
            ways.append(f"{getattr(books, state)} {state} ({why})")
    return ", ".join(ways)


@group.command()
def status(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """Show a mailout's state and its balanced books."""
    with opened_store(ready_settings()) as store:
        _print_status(store, find_mailout(store, mailout_id).id, json)


@group.command("list")
def list_(json: JsonFlag = False) -> None:
    """Show the mailouts, newest first."""
    with opened_store(ready_settings()) as store:
        mailouts = store.mailouts.all()
    if json:
        print_json([as_dict(mailout) for mailout in mailouts])
        return
    rows = [(m.id, m.name, status_words(m), m.created_at, m.sent_at) for m in mailouts]
    print_table("Mailouts", ["id", "letter", "status", "created", "sent"], rows)


@group.command()
def pause(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """Stop handing out letters; those on the wire finish."""
    with opened_store(ready_settings()) as store:
        mailout_id = find_mailout(store, mailout_id).id
        _require(store, mailout_id, store.mailouts.set_paused(mailout_id, True), "paused")
        _print_status(store, mailout_id, json)


@group.command()
def resume(
    mailout_id: MailoutId,
    not_sent_elsewhere: Annotated[
        bool,
        typer.Option("--not-sent-elsewhere", help="You know that no other copy sent it."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Go on with a paused mailout."""
    with opened_store(ready_settings()) as store:
        mailout = find_mailout(store, mailout_id)
        mailout_id = mailout.id
        if mailout.reason == RESTORED and not not_sent_elsewhere:
            raise Refused(
                f"Mailout {mailout_id} may have been sent from another copy of this database: whoever got it "
                "would get it again. If you know that it was not sent, add --not-sent-elsewhere."
            )
        _require(store, mailout_id, store.mailouts.set_paused(mailout_id, False), "resumed")
        _print_status(store, mailout_id, json)


@group.command()
def cancel(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """End a mailout for good: what is not sent yet is skipped."""
    with opened_store(ready_settings()) as store:
        mailout_id = find_mailout(store, mailout_id).id
        _require(store, mailout_id, store.mailouts.cancel(mailout_id), "cancelled")
        while store.mailouts.cancel_chunk(mailout_id, 5_000):
            pass
        store.mailouts.complete(mailout_id)
        _print_status(store, mailout_id, json)


def _require(store: SqlStore, mailout_id: str, changed: bool, what: str) -> None:
    if not changed:
        mailout = find_mailout(store, mailout_id)
        raise Refused(f"Mailout {mailout_id} is {status_words(mailout)}: it cannot be {what}.")


def status_words(mailout: Mailout) -> str:
    """The state for people: a mailout that was cancelled half-way is ``sent``, and that would mislead."""
    if mailout.cancelled:
        ended = {
            MailoutStatus.SENT: "cancelled (sent in part)",
            MailoutStatus.FAILED: "cancelled (nothing was sent)",
        }
        return ended.get(mailout.status, f"{mailout.status}, being cancelled")
    return f"{mailout.status}, paused" if mailout.paused else str(mailout.status)


def _print_status(store: SqlStore, mailout_id: str, json: bool) -> None:
    mailout = find_mailout(store, mailout_id)
    books = store.jobs.books(mailout_id)
    if json:
        print_json(mailout_view(mailout, books))
        return
    say(f"Mailout {mailout.id} «{mailout.name}»: {status_words(mailout)}")
    if mailout.reason and not mailout.cancelled:
        say(f"  {mailout.reason}")
    print_books(books)


def print_books(books: Books) -> None:
    """The books as a table; the states sum up to what was planned, the marks are of those sent."""
    states = ["scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt"]
    rows: list[tuple[str, Any]] = [(name.replace("_", " "), getattr(books, name)) for name in states]
    rows.append(("= planned" if books.balanced else "≠ planned", books.planned))
    marks = [("delivered", books.delivered), ("bounced", books.bounced), ("complained", books.complained)]
    rows += [(f"  of those sent: {name}", count) for name, count in marks]
    if books.duplicates:
        rows.append(("DUPLICATES: a second copy left", books.duplicates))
    print_table("", ["jobs", "count"], rows)
