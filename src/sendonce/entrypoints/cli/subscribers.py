"""sendonce subscribers …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sendonce.domain.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import opened_store, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.entrypoints.cli.progress import counting

group = typer.Typer(name="subscribers", help="People on the opt-in list.", no_args_is_help=True)


@group.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file with a header line; a column 'email' is needed.")],
    json: JsonFlag = False,
) -> None:
    """Add people from a CSV file. An opt-out on record here is never undone."""
    from sendonce.adapters.sources.subscribers_csv import read_subscribers
    from sendonce.flows.import_subscribers import import_subscribers

    settings = ready_settings(quiet=True)
    rows = read_subscribers(file)
    with opened_store(settings) as store, counting("Importing", silent=json) as tick:
        report = import_subscribers(store.subscribers, DEFAULT_TENANT, rows, tick)
    if json:
        print_json(report.as_dict())
        return
    say(
        f"{report.counts.inserted} added, {report.counts.updated} updated, "
        f"{report.counts.unchanged} unchanged, {report.invalid} invalid."
    )
    for bad in report.bad_rows:
        say(f"  line {bad.line}: {bad.reason}")
    if report.invalid > len(report.bad_rows):
        say(f"  … and {report.invalid - len(report.bad_rows)} more.")


@group.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 50,
    json: JsonFlag = False,
) -> None:
    """Show subscribers in the order of their addresses."""
    settings = ready_settings()
    with opened_store(settings) as store:
        people = store.subscribers.all(DEFAULT_TENANT, limit=limit)
        counts = store.subscribers.count(DEFAULT_TENANT)
    if json:
        print_json({"counts": counts, "subscribers": [as_dict(person) for person in people]})
        return
    rows = [(p.email, p.name, p.status, p.created_at) for p in people]
    print_table(f"{sum(counts.values())} subscribers", ["email", "name", "status", "since"], rows)
