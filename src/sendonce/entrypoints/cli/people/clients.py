"""sendonce tenant …, sendonce direction …"""

from __future__ import annotations

import getpass
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.people.directions import Basis, NewDirection, check_terms, tenant_named
from sendonce.domain.people.legal_gate import why_blocked
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.entrypoints.cli.context import opened_clients, opened_prospects, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import BadInput

tenants = typer.Typer(name="tenant", help="Clients, each with data of its own.", no_args_is_help=True)
directions = typer.Typer(
    name="direction", help="What a client writes to strangers about, and by what right.", no_args_is_help=True
)

TenantOption = Annotated[str, typer.Option("--tenant", help="The client; 'tenant list' shows them.")]


@tenants.command("add")
def add_tenant(
    tenant: Annotated[str, typer.Argument(metavar="ID", help="Lower-case letters, digits and dashes.")],
    name: Annotated[str, typer.Option(help="As people call it.")] = "",
    weight: Annotated[int | None, typer.Option(help="Its share beside other clients; usually 1.")] = None,
    daily: Annotated[
        int | None,
        typer.Option(help="Letters of campaigns in any 24 hours, from all its senders; 0: no limit."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Add a client, or change what was said of its weight and its letters a day."""
    from sendonce.flows.people.add_client import add_tenant, set_terms

    tenant_named(tenant)
    check_terms(weight, daily)
    with opened_clients(ready_settings(), make=True) as store:
        added = add_tenant(store, tenant, name, getpass.getuser())
        terms = set_terms(store, tenant, weight, daily, getpass.getuser())
    if json:
        print_json({"id": tenant, "added": added, "weight": terms.weight, "daily": terms.daily})
        return
    bound = f"{terms.daily} letters a day" if terms.daily else "no limit a day"
    say(f"{'Added' if added else 'Known:'} {tenant}, with weight {terms.weight} and {bound}.")


@tenants.command("list")
def list_tenants(json: JsonFlag = False) -> None:
    """Show the clients."""
    settings = ready_settings()
    with opened_clients(settings) as store:
        found = [as_dict(tenant) for tenant in store.tenants.all()]
    if json:
        print_json(found)
    else:
        columns = ["id", "name", "weight", "daily", "created_at"]
        rows = [[each[column] for column in columns] for each in found]
        print_table("Tenants", [*columns[:-1], "added"], rows, time_zone(settings))


@directions.command("add")
def add_direction(
    direction: Annotated[str, typer.Argument(metavar="ID", help="Lower-case letters, digits and dashes.")],
    jurisdiction: Annotated[str, typer.Option(help="Whose law holds for its recipients: RU, DE, US, …")],
    basis: Annotated[Basis, typer.Option(help="By what right they are written to.")],
    tenant: TenantOption = DEFAULT_TENANT,
    note: Annotated[str | None, typer.Option(help="How consent was given, or what the interest is.")] = None,
    language: Annotated[str, typer.Option(help="Of its letters: ru or en.")] = "",
    name: Annotated[str, typer.Option(help="As people call it.")] = "",
    offer: Annotated[Path | None, typer.Option(help="A TOML file: what its letters offer.")] = None,
    json: JsonFlag = False,
) -> None:
    """Add a direction, or say anew what is known of it."""
    from sendonce.entrypoints.cli.people.source_lines import naming_the_line
    from sendonce.flows.prospecting.change_direction import change_direction

    source = _text_of(offer) if offer else ""
    told = _toml(offer, source) if offer else None
    new = NewDirection(direction, jurisdiction.upper(), basis, note, language, name, told)
    with naming_the_line(offer or Path(), source), opened_prospects(ready_settings(), make=True) as store:
        put, taken_back = change_direction(store, tenant_named(tenant), new, getpass.getuser())
    blocked = why_blocked(put)
    if json:
        print_json({**as_dict(put), "blocked": blocked, "taken_back": taken_back})
    else:
        say(f"{put.tenant_id} writes about {put.name}: {put.jurisdiction}, {put.basis}, in {put.language}.")
        if blocked:
            say(f"Nothing is sent in this direction. {blocked}")
        if taken_back:
            say(f"{count_of(taken_back, 'planned letter was', 'planned letters were')} taken back.")


@directions.command("list")
def list_directions(
    tenant: Annotated[str | None, typer.Option(help="Of one client only.")] = None, json: JsonFlag = False
) -> None:
    """Show the directions."""
    settings = ready_settings()
    with opened_clients(settings) as store:
        found = [as_dict(each) for each in store.directions.all(tenant_named(tenant) if tenant else None)]
    if json:
        print_json(found)
        return
    columns = ["tenant_id", "id", "name", "jurisdiction", "basis", "language", "note"]
    titles = ["tenant", "id", "name", "jurisdiction", "basis", "language", "note"]
    print_table("Directions", titles, [[each[name] for name in columns] for each in found])


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise BadInput(f"{file} is not TOML: {exc}.") from exc


def _toml(file: Path, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as exc:
        raise BadInput(f"{file} is not TOML: {exc}.") from exc
