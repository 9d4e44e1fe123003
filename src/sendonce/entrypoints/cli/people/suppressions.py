"""sendonce suppression …"""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import tenant_named
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import EVERYBODY, EXPORTED, Suppression
from sendonce.entrypoints.cli.context import opened_clients, opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.entrypoints.cli.people.columns import column_mapping
from sendonce.errors import BadInput

if TYPE_CHECKING:
    from sendonce.ports.people import TenantStore
    from sendonce.ports.store import Store

group = typer.Typer(name="suppression", help="Addresses that must not be written to.", no_args_is_help=True)

Everybody = Annotated[bool, typer.Option("--global", help="For every tenant, not for one alone.")]
Tenant = Annotated[str | None, typer.Option(help="For this client; usually the default one.")]


def _named(tenant: str | None, everybody: bool) -> TenantId:
    """The client that is meant. Raises BadInput for one that cannot be, or beside --global."""
    if tenant is not None and everybody:
        raise BadInput("--global is for every tenant: leave out --tenant.")
    return tenant_named(tenant) if tenant is not None else DEFAULT_TENANT


def _known_scope(store: TenantStore, tenant: str | None, everybody: bool) -> TenantId:
    """Raises NotFound for a client that is not there: a misspelt name would protect nobody."""
    from sendonce.flows.people.add_client import require_tenant

    named = require_tenant(store, _named(tenant, everybody))
    return EVERYBODY if everybody else named


@group.command()
def add(
    address: str,
    note: Annotated[str, typer.Option(help="Why.")] = "",
    tenant: Tenant = None,
    everybody: Everybody = False,
    json: JsonFlag = False,
) -> None:
    """Never write to this address again."""
    from sendonce.flows.people.suppress import suppress

    target = parse_address(address)
    with opened_clients(ready_settings(), make=True) as store:
        added = suppress(store.suppressions, _known_scope(store, tenant, everybody), target, note or None)
    if json:
        print_json({"address": target.text, "added": added})
    else:
        say(f"{target.text} is suppressed." if added else f"{target.text} was suppressed already.")


@group.command()
def remove(address: str, tenant: Tenant = None, everybody: Everybody = False, json: JsonFlag = False) -> None:
    """Allow an address again; kept in the audit log."""
    from sendonce.flows.people.suppress import how_to_lift
    from sendonce.wiring.suppressions import allow_again

    target, settings = parse_address(address), ready_settings()
    named = _named(tenant, everybody)
    with opened_store(settings) as store:
        scope = EVERYBODY if everybody else named
        left = allow_again(settings, store, named, scope, target, getpass.getuser())
    if json:
        print_json({"address": target.text, "removed": True})
    elif left is not None:
        say(f"Removed, but {target.text} still may not be written to.{how_to_lift(left)}")
    else:
        say(f"{target.text} may be written to again.")


@group.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 100,
    json: JsonFlag = False,
) -> None:
    """Show suppressed addresses."""
    settings = ready_settings()
    with opened_store(settings) as store:
        found = store.suppressions.all(limit=limit)
    if json:
        print_json([as_dict(item) for item in found])
        return
    print_table(count_of(len(found), "suppression"), EXPORTED, map(_row, found), time_zone(settings))


def _row(item: Suppression) -> tuple[object, ...]:
    address = item.address or f"(erased, key {item.key[:8]}…)"
    return address, item.scope, item.reason, item.note, item.created_at


@group.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(help="One address a line, or a CSV whose first line names the columns.")
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map", help="Which column holds the addresses, where its title does not tell: email=E."
        ),
    ] = None,
    tenant: Tenant = None,
    everybody: Everybody = False,
    encoding: Annotated[str, typer.Option(help="The file's encoding, where it is not found out.")] = "",
    json: JsonFlag = False,
) -> None:
    """Suppress every address of a file. Reasons that it gives are kept."""
    from sendonce.flows.people.import_suppressions import import_suppressions
    from sendonce.wiring.files import opt_outs_in

    found = opt_outs_in(file, column_mapping(columns or []), encoding)
    with opened_clients(ready_settings(), make=True) as store:
        report = import_suppressions(store.suppressions, _known_scope(store, tenant, everybody), found)
    bad = report.bad
    if json:
        lines = [{"line": line, "reason": reason} for line, reason in bad]
        print_json(
            {"added": report.added, "known": report.known, "invalid": len(bad), "invalid_lines": lines}
        )
    else:
        for line, reason in bad[:20]:
            say(f"  line {line}: {reason}")
        if len(bad) > 20:
            say(f"  … and {len(bad) - 20} more.")
        known = count_of(report.known, "was", "were")
        say(f"{report.added} added, {known} there already, {len(bad)} invalid.")
    if bad:
        # An opt-out that was not understood is somebody who will be written to: that is not success.
        raise typer.Exit(1)


@group.command()
def export(json: JsonFlag = False) -> None:
    """Write all suppressions to stdout as CSV. Erased people have no address any more and are left out."""
    from sendonce.wiring.files import csv_table

    with opened_store(ready_settings()) as store:
        if json:
            print_json([as_dict(item) for item in _everything(store)])
            return
        with csv_table(None, EXPORTED, even_if_empty=True) as table:
            for item in _everything(store):
                if item.address:
                    since = item.created_at.isoformat()
                    table.write((item.address, item.scope, item.reason, item.note, since))


@group.command()
def sync(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask and compare; change nothing.")] = False,
    json: JsonFlag = False,
) -> None:
    """Bring our suppressions and the lists of the SES accounts in step now, both ways.

    With SES_SUPPRESSION_SYNC a worker does it every few minutes.
    """
    from sendonce.wiring.suppressions import sync_now

    settings = ready_settings()
    with opened_store(settings) as store:
        reports = sync_now(settings, store, dry_run=dry_run)
    if json:
        print_json([as_dict(report) for report in reports])
        return
    would = "would be " if dry_run else ""
    for each in reports:
        read = count_of(each.read, "address", "addresses")
        say(
            f"{each.provider}: {read} of theirs read, {each.taken} of them new here; {each.told} of ours "
            f"{would}told, {each.lifted} {would}taken off their list."
        )
        if each.unreadable:
            say(f"  {count_of(each.unreadable, 'entry', 'entries')} of theirs could not be read.")


def _everything(store: Store) -> Iterator[Suppression]:
    after = ("", "")
    while page := store.suppressions.all(after=after, limit=1000):
        yield from page
        after = (page[-1].key, page[-1].scope)
