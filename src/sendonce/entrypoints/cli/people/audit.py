"""sendonce audit …"""

from __future__ import annotations

import json as encoding
from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.context import opened_clients, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say, say_error

group = typer.Typer(name="audit", help="Who did what, and whether the log is whole.", no_args_is_help=True)


@group.command("list")
def list_(limit: Annotated[int, typer.Option(min=1, max=100_000)] = 50, json: JsonFlag = False) -> None:
    """Show the newest entries."""
    settings = ready_settings()
    with opened_clients(settings) as store:
        found = store.audit_log.all(limit)
    if json:
        print_json([as_dict(entry) for entry in found])
        return
    rows = [
        [each.number, each.at, each.actor, each.action, each.subject, encoding.dumps(each.details)]
        for each in found
    ]
    columns = ["no.", "when", "who", "what", "to what", "details"]
    print_table(count_of(len(found), "entry", "entries"), columns, rows, time_zone(settings))


@group.command()
def verify(
    head: Annotated[str | None, typer.Option(help="A head that you noted earlier.")] = None,
    json: JsonFlag = False,
) -> None:
    """Check that no entry was changed, moved or removed. Ends with 1 if one was."""
    from sendonce.flows.people.verify_audit import verify_audit

    with opened_clients(ready_settings()) as store:
        report = verify_audit(store.audit_log, head)
    if json:
        print_json({"whole": not report.faults, **as_dict(report)})
    else:
        say(f"{count_of(report.entries, 'entry', 'entries')}; names were erased from {report.redacted}.")
        if report.before_the_chain:
            say(f"{report.before_the_chain} more are older than the chain and cannot be checked.")
        for fault in report.faults:
            say_error(fault)
        say(f"Head: {report.head}")
    if report.faults:
        raise typer.Exit(1)
