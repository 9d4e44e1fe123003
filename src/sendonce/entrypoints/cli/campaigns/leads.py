"""sendonce leads …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.entrypoints.cli.context import opened_campaigns, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say, say_error
from sendonce.entrypoints.cli.people.columns import column_mapping

group = typer.Typer(name="leads", help="People whom campaigns may write to.", no_args_is_help=True)

Tenant = Annotated[str, typer.Option(help="The client.")]
_SHOWN = 20


@group.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file with a column of addresses.")],
    tenant: Tenant,
    direction: Annotated[str, typer.Option(help="What they are written to about.")],
    map_: Annotated[list[str] | None, typer.Option("--map", help="email=TITLE, company=TITLE, …")] = None,
    encoding: Annotated[str, typer.Option(help="Of the file; usually found out.")] = "",
    json: JsonFlag = False,
) -> None:
    """Add leads to a direction. Who is known is refreshed, who was stopped stays so."""
    from sendonce.flows.campaigns.import_leads import import_leads
    from sendonce.wiring.campaigns import leads_in, receivers

    settings = ready_settings()
    with opened_campaigns(settings, make=True) as store:
        rows = leads_in(file, column_mapping(map_ or []), encoding)
        done = import_leads(store, tenant, direction, rows, file.name, receivers(settings))
    if json:
        bad = [{"line": row.line, "raw": row.raw, "reason": row.reason} for row in done.bad]
        print_json({**as_dict(done.counts), "rejected": len(bad), "errors": bad})
        return
    counts = done.counts
    say(f"Added {counts.added}, updated {counts.updated}, unchanged {counts.unchanged}.")
    for row in done.bad[:_SHOWN]:
        say_error(f"Line {row.line}: {row.reason}")
    if len(done.bad) > _SHOWN:
        say_error(f"… and {len(done.bad) - _SHOWN} more lines. All of them: --json")


@group.command("from-contacts")
def from_contacts(
    tenant: Tenant,
    direction: Annotated[str, typer.Option(help="Whose searches found them.")],
    json: JsonFlag = False,
) -> None:
    """Make leads of the companies that searches of a direction found, one address of each."""
    from sendonce.flows.campaigns.leads_from_contacts import leads_from_contacts
    from sendonce.wiring.campaigns import receivers

    settings = ready_settings()
    with opened_campaigns(settings) as store:
        done = leads_from_contacts(store, tenant, direction, receivers(settings))
    if json:
        print_json({**as_dict(done.counts), "left_out": done.left_out})
        return
    counts = done.counts
    say(f"Added {counts.added}, updated {counts.updated}, unchanged {counts.unchanged}.")
    for reason, count in sorted(done.left_out.items()):
        say(f"Left out {count}: {reason}.")


@group.command("list")
def list_(
    tenant: Tenant,
    direction: Annotated[str | None, typer.Option(help="Of one direction only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 100,
    json: JsonFlag = False,
) -> None:
    """Show leads."""
    from sendonce.domain.people.directions import tenant_named

    settings = ready_settings()
    with opened_campaigns(settings) as store:
        found = store.leads.all(tenant_named(tenant), direction, limit=limit)
    if json:
        print_json([as_dict(lead) for lead in found])
        return
    columns = ["email", "name", "company", "direction", "receiver", "stopped", "added"]
    rows = [
        [each.email, each.name, each.company, each.direction_id, each.receiver, each.stopped, each.created_at]
        for each in found
    ]
    print_table(count_of(len(found), "lead", "leads"), columns, rows, time_zone(settings))
