"""The tree of commands, and how their errors end."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sendonce.entrypoints.cli import demo, demo_prospect, sandbox
from sendonce.entrypoints.cli.campaigns import campaigns, leads, outlook
from sendonce.entrypoints.cli.campaigns.demo import demo_campaign
from sendonce.entrypoints.cli.engine import (
    database,
    doctor,
    events,
    jobs,
    mailbox,
    scheduler,
    senders,
    service,
    status,
    workers,
)
from sendonce.entrypoints.cli.mailouts import letters, mailouts, notion, reports
from sendonce.entrypoints.cli.output import say_error
from sendonce.entrypoints.cli.people import audit, clients, people, subscribers, suppressions
from sendonce.entrypoints.cli.prospecting import (
    companies,
    contacts,
    duplicates,
    funnel,
    letter_writing,
    prospect,
    searches,
    written_letters,
)
from sendonce.errors import SendonceError

_NO_EDGE = 1000


class WholeHelp(TyperGroup):
    """Lists the commands with all that is said of them; click cuts it at the edge of the screen."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, it.get_short_help_str(_NO_EDGE)) for name, it in commands if it and not it.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


app = typer.Typer(
    name="sendonce",
    cls=WholeHelp,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    help="Sends each letter to each recipient once, and can prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for group in (
    subscribers.group,
    mailouts.group,
    jobs.group,
    events.group,
    mailbox.group,
    suppressions.group,
    senders.group,
    clients.tenants,
    clients.directions,
    audit.group,
    leads.group,
    campaigns.group,
    workers.group,
    database.group,
    notion.group,
    companies.group,
    contacts.group,
    written_letters.group,
    prospect.group,
    searches.group,
):
    app.add_typer(group, cls=WholeHelp)
for command in (
    demo.demo,
    demo_campaign,
    demo_prospect.demo_prospect,
    doctor.doctor,
    status.status,
    service.serve,
    service.worker,
    scheduler.scheduler,
    service.tick,
    sandbox.sandbox,
):
    app.command()(command)
app.command()(people.erase)
app.command()(people.show)
for of_mailout in (letters.create, letters.update, letters.preview, letters.delete, reports.report):
    mailouts.group.command()(of_mailout)
for of_companies in (duplicates.dedupe, duplicates.review, duplicates.undo, duplicates.audit):
    companies.group.command()(of_companies)
prospect.group.command()(funnel.status)
for of_letters in (letter_writing.write, letter_writing.plan):
    written_letters.group.command()(of_letters)
for of_campaign in (outlook.preview, outlook.forecast, outlook.report):
    campaigns.group.command()(of_campaign)
app.command()(service.settings)
app.command()(service.version)


@app.callback()
def sendonce(
    version: Annotated[
        bool,
        typer.Option("--version", callback=service.print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Sends each letter to each recipient once, and can prove it."""


def main() -> None:
    """Run a command. Exit codes: 0 done, 1 failed, 2 usage, 3 refused by a rule."""
    try:
        app()
    except SendonceError as exc:
        say_error(str(exc))
        sys.exit(exc.exit_code)
    except KeyboardInterrupt:
        say_error("Interrupted.")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output went away (sendonce … | head): not our error.
        sys.stderr.close()
        sys.exit(0)
