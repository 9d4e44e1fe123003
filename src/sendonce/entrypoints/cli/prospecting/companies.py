"""sendonce companies …"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import Company, CompanyStatus
from sendonce.domain.prospecting.sites import Site, shown_domain
from sendonce.entrypoints.cli.context import check_outputs, opened_prospects, ready_settings, time_zone
from sendonce.entrypoints.cli.output import (
    JsonFlag,
    as_dict,
    print_json,
    print_table,
    say,
    say_error,
    short_ids,
    shown_of,
)
from sendonce.errors import BadInput

if TYPE_CHECKING:
    from sendonce.ports.prospecting import ProspectingStore

group = typer.Typer(name="companies", help="Companies that searches found.", no_args_is_help=True)

TenantOption = Annotated[str, typer.Option("--tenant", help="Whose companies.")]
StatusOption = Annotated[CompanyStatus | None, typer.Option(help="Only those with this status.")]
OutputOption = Annotated[Path | None, typer.Option("-o", "--output", help="A file; stdout if not given.")]

EXPORTED = (
    *("id", "domain", "name", "website_url", "status", "opt_out", "opt_out_reason", "primary_id"),
    *("city", "inn", "ogrn", "language", "regions", "searches", "reason", "crawled_at", "created_at"),
)
_PAGE = 1_000


@group.command("list")
def list_(
    status: StatusOption = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 50,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Show companies in the order in which they were found."""
    settings = ready_settings(quiet=True)
    with opened_prospects(settings) as store:
        found = store.companies.all(TenantId(tenant), status=status, limit=limit)
        rows = _with_searches(store, TenantId(tenant), found)
        counts = store.companies.count(TenantId(tenant))
    if json:
        print_json({"counts": counts, "companies": rows})
        return
    ids = short_ids([company.id for company in found])
    shown = [
        (ids[c.id], shown_domain(c.domain), c.name, c.city, c.status, row["regions"], c.created_at)
        for c, row in zip(found, rows, strict=True)
    ]
    total = counts.get(status, 0) if status else sum(counts.values())
    title = shown_of(len(found), total, "company", "companies")
    columns = ["id", "domain", "name", "city", "status", "regions", "found"]
    print_table(title, columns, shown, time_zone(settings))


@group.command()
def export(
    status: StatusOption = None,
    output: OutputOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Write companies as CSV that is safe to open in a spreadsheet; with --json one object a line."""
    from sendonce.wiring.files import csv_table

    if json and output:
        raise BadInput("--json writes to stdout: leave out -o, or redirect it.")
    settings = ready_settings(quiet=True)
    check_outputs(settings, output)
    with opened_prospects(settings) as store:
        rows = _everybody(store, TenantId(tenant), status)
        if json:
            for row in rows:
                print_json(row)
            return
        with csv_table(output, EXPORTED, even_if_empty=True) as table:
            for row in rows:
                table.write([row[column] for column in EXPORTED])
    if output:
        say_error(f"{count_of(table.rows, 'company is', 'companies are')} in {output}.")


@group.command("opt-out")
def opt_out(
    company: Annotated[str, typer.Argument(help="Its domain, or the beginning of its id.")],
    note: Annotated[str | None, typer.Option(help="Why, such as 'called on 5 May'.")] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Write to a company no more: its addresses are suppressed, and planned letters do not leave."""
    from sendonce.flows.prospecting.opt_out_company import opt_out_company
    from sendonce.wiring.prospecting import site_reader

    reason = note or f"by {getpass.getuser()}"
    with opened_prospects(ready_settings(quiet=True)) as store:
        found = opt_out_company(store, site_reader(), TenantId(tenant), company, reason)
    if json:
        print_json({"id": found.id, "domain": found.domain, "opt_out_reason": reason})
    else:
        say(f"{shown_domain(found.domain)} gets no more letters.")


def _everybody(
    store: ProspectingStore, tenant_id: TenantId, status: CompanyStatus | None
) -> Iterator[dict[str, Any]]:
    """Page by page: memory does not grow with the list."""
    after = ""
    while page := store.companies.all(tenant_id, status=status, after=after, limit=_PAGE):
        yield from _with_searches(store, tenant_id, page)
        after = page[-1].id


def _with_searches(
    store: ProspectingStore, tenant_id: TenantId, page: Sequence[Company]
) -> list[dict[str, Any]]:
    """Companies as programs see them, with the regions and searches that found them."""
    by = store.companies.found_by(tenant_id, [company.id for company in page])
    rows = []
    for company in page:
        searches = by.get(company.id, ())
        regions = dict.fromkeys(search.region for search in searches if search.region)
        told = {"regions": ", ".join(regions), "searches": ", ".join(search.text for search in searches)}
        rows.append({**as_dict(company), **told})
    return rows


@group.command()
def domain(
    urls: Annotated[list[str] | None, typer.Argument(help="Addresses; none: lines of stdin.")] = None,
    json: JsonFlag = False,
) -> None:
    """Show which company a URL belongs to: its canonical form, its domain, its kind. Fetches nothing."""
    from sendonce.wiring.prospecting import site_reader

    reader = site_reader()
    sites = [reader.read(_printable(url)) for url in urls or _lines_of_stdin()]
    if json:
        print_json([as_dict(site) for site in sites])
        return
    columns = ["input", "url", "domain", "kind"]
    print_table(count_of(len(sites), "address", "addresses"), columns, map(_row, sites))


def _row(site: Site) -> tuple[object, ...]:
    return site.input, site.url, site.domain and shown_domain(site.domain), site.kind.value


def _lines_of_stdin() -> list[str]:
    if sys.stdin.isatty():
        raise BadInput("Name a URL, or pipe a list into this command, one a line.")
    text = sys.stdin.buffer.read().decode("utf-8-sig", "replace")
    return [line for line in map(str.strip, text.splitlines()) if line]


def _printable(argument: str) -> str:
    """Bytes of the command line that are not UTF-8 arrive as lone surrogates, which nothing can print."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
