"""sendonce mailout …"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.engine.checks import count_of, people
from sendonce.domain.engine.moments import read_moment, shown_moment
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus
from sendonce.domain.mailouts.status_words import status_words
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import find_mailout, opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.mailouts.mailout_status import (
    next_step,
    print_outcome,
    print_status,
)
from sendonce.entrypoints.cli.output import (
    JsonFlag,
    as_dict,
    print_json,
    print_table,
    say,
    say_error,
    short_ids,
)
from sendonce.entrypoints.cli.questions import YesFlag, confirm, may_ask
from sendonce.errors import BadInput, RefusedByRule, SenderRefused

if TYPE_CHECKING:
    from sendonce.flows.mailouts.start_mailout import StartOrder, StartReport
    from sendonce.ports.store import Store
    from sendonce.settings import Settings

group = typer.Typer(name="mailout", help="One letter to all active subscribers, once.", no_args_is_help=True)

MailoutId = Annotated[
    str, typer.Argument(help="The mailout's id, as 'mailout create' printed it, or its page in Notion.")
]

ForceFlag = Annotated[
    bool, typer.Option("--force", help="Start it although the provider would refuse every letter.")
]


@group.command()
def ready(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """Make a draft ready to be sent. Nothing is sent yet."""
    from sendonce.flows.mailouts.make_ready import make_ready

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        make_ready(store, mailout)
        print_status(settings, store, mailout.id, json)
        if not json:
            say(next_step(find_mailout(store, mailout.id)))


@group.command()
def send(
    mailout_id: MailoutId,
    at: Annotated[str, typer.Option("--at", help="Start it then: '2026-12-01 09:00' by APP_TIMEZONE.")] = "",
    now: Annotated[bool, typer.Option("--now", help="Start it now, whatever time its letter names.")] = False,
    except_of: Annotated[
        list[str] | None,
        typer.Option("--except-recipients-of", help="Leave out whom this mailout went to. Repeatable."),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Only start it; a worker carries it out.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do all the checks and send nothing.")] = False,
    force: ForceFlag = False,
    yes: YesFlag = False,
    json: JsonFlag = False,
) -> None:
    """Send a mailout to all active subscribers, once. Works in the foreground until done."""
    from sendonce.entrypoints.worker import run_until_mailout_ends
    from sendonce.flows.mailouts.start_mailout import StartOrder
    from sendonce.wiring.worker import require_for_work

    settings = ready_settings(quiet=True)
    if at and now:
        raise BadInput("--at and --now contradict each other: give one of them.")
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        mailout_id = mailout.id
        _refuse_if_draft_or_cancelled(mailout, dry_run)
        order = StartOrder(
            mailout_id,
            mailout.tenant_id,
            dry_run,
            send_at=_moment(settings, at) if at else None,
            at_once=now,
            force=force,
            except_of=tuple(find_mailout(store, old).id for old in except_of) if except_of else None,
        )
        if not (detach or dry_run or at):
            require_for_work(settings, store)
        if mailout.status != MailoutStatus.SENDING or detach or dry_run or at or except_of:
            report = _start(settings, store, order, ask=may_ask(yes=yes, json=json))
            if dry_run:
                _print_dry_run(report, json)
                return
            detach = detach or report.waits_until is not None
        if detach:
            print_status(settings, store, mailout_id, json)
            return
        run_until_mailout_ends(settings, store, mailout, silent=json)
        print_outcome(settings, store, mailout_id, json)


def _start(settings: Settings, store: Store, order: StartOrder, *, ask: bool) -> StartReport:
    """Start it, or schedule it; with ``ask`` after a person has seen to how many people it goes."""
    from sendonce.flows.mailouts.start_mailout import start_mailout
    from sendonce.wiring.messages import message_settings
    from sendonce.wiring.sender_check import PATIENTLY, make_sender_check

    check = make_sender_check(settings, store, PATIENTLY)

    def run(order: StartOrder) -> StartReport:
        try:
            return start_mailout(store, lambda: message_settings(settings, store), order, check)
        except SenderRefused as exc:
            raise RefusedByRule(f"{exc} To start it all the same, add --force.") from exc

    if ask and not order.dry_run:
        trial = run(replace(order, dry_run=True))
        when = f" at {shown_moment(trial.waits_until, time_zone(settings))}" if trial.waits_until else ""
        confirm(f"Send to {people(trial.planned)}{when}?", otherwise="Nothing was sent.")
    return run(order)


def _moment(settings: Settings, text: str) -> datetime:
    written = read_moment(text, time_zone(settings))
    if written.note:
        say_error(written.note)
    return written.at


def _refuse_if_draft_or_cancelled(mailout: Mailout, dry_run: bool) -> None:
    """A draft has a command that helps it. A cancelled mailout is ``sent`` or ``failed``, and that would
    mislead."""
    if mailout.status == MailoutStatus.DRAFT and not dry_run:
        raise RefusedByRule(f"Mailout {mailout.id} is still a draft. {next_step(mailout)}")
    if mailout.cancelled and mailout.status != MailoutStatus.SENDING:
        raise RefusedByRule(f"Mailout {mailout.id} is {status_words(mailout)}: create it anew to send it.")


def _print_dry_run(report: StartReport, json: bool) -> None:
    if json:
        print_json({"id": report.mailout.id, "status": "dry_run", "planned": report.planned})
    else:
        whom = count_of(report.planned, "subscriber")
        say(f"Dry run: mailout {report.mailout.id} would go to {whom}. Nothing was sent.")


@group.command("test")
def send_test(mailout_id: MailoutId, force: ForceFlag = False, json: JsonFlag = False) -> None:
    """Send a mailout's letter to TEST_EMAILS only, its subject marked. Any number of times."""
    from sendonce.entrypoints.worker import run_until_mailout_ends
    from sendonce.flows.mailouts.start_mailout import StartOrder
    from sendonce.wiring.worker import require_for_work

    settings = ready_settings(quiet=True)
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        require_for_work(settings, store)
        order = StartOrder(mailout.id, mailout.tenant_id, test_emails=settings.test_emails, force=force)
        report = _start(settings, store, order, ask=False)
        run_until_mailout_ends(settings, store, report.mailout, silent=json)
        print_outcome(settings, store, report.mailout.id, json)


@group.command()
def status(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """Show a mailout's state and its balanced books."""
    settings = ready_settings()
    with opened_store(settings) as store:
        print_status(settings, store, find_mailout(store, mailout_id).id, json)


@group.command("list")
def list_(json: JsonFlag = False) -> None:
    """Show the mailouts, newest first."""
    settings = ready_settings()
    with opened_store(settings) as store:
        mailouts = store.mailouts.all(DEFAULT_TENANT)
    if json:
        print_json([as_dict(mailout) for mailout in mailouts])
        return
    ids = short_ids([m.id for m in mailouts])
    rows = [(ids[m.id], m.name, status_words(m), m.created_at, m.sent_at) for m in mailouts]
    print_table("Mailouts", ["id", "letter", "status", "created", "sent"], rows, time_zone(settings))


@group.command()
def pause(mailout_id: MailoutId, json: JsonFlag = False) -> None:
    """Stop handing out letters; those on the wire finish."""
    from sendonce.flows.mailouts.pause_mailout import pause_mailout

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        pause_mailout(store, mailout)
        print_status(settings, store, mailout.id, json)


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
    from sendonce.flows.mailouts.resume_mailout import resume_mailout

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        resume_mailout(store, mailout, not_sent_elsewhere=not_sent_elsewhere)
        print_status(settings, store, mailout.id, json)


@group.command()
def cancel(mailout_id: MailoutId, yes: YesFlag = False, json: JsonFlag = False) -> None:
    """End a mailout for good: what is not sent yet is skipped."""
    from sendonce.flows.mailouts.cancel_mailout import cancel_mailout

    settings = ready_settings()
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        if may_ask(yes=yes, json=json) and not mailout.cancelled:
            left = store.jobs.books(mailout.id).scheduled
            are = "letter is" if left == 1 else "letters are"
            skipped = f" {left:,} {are} not sent yet and never will be." if left else ""
            confirm(f"Cancel «{mailout.name}» for good?{skipped}", otherwise="Nothing was cancelled.")
        cancel_mailout(store, mailout)
        print_status(settings, store, mailout.id, json)
