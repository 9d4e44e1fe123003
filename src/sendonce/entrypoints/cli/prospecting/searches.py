"""sendonce search …"""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.searches import MAX_PAGES, USUAL_PAGES, AddedSearch, SearchQuery
from sendonce.entrypoints.cli.context import opened_prospects, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, print_json, print_table, say, short_ids
from sendonce.errors import BadInput

group = typer.Typer(name="search", help="What to look for, and where.", no_args_is_help=True)

Tenant = Annotated[str, typer.Option(help="Whose search it is.")]


@group.command()
def add(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Words to search for; none: lines of --file or of stdin.")
    ] = None,
    region: Annotated[str, typer.Option(help="A city or region by its name, or by Yandex's number.")] = "",
    pages: Annotated[
        int, typer.Option(help=f"Pages of a hundred results each, at most {MAX_PAGES}.")
    ] = USUAL_PAGES,
    direction: Annotated[str | None, typer.Option(help="What letters to these companies are about.")] = None,
    tenant: Tenant = DEFAULT_TENANT,
    file: Annotated[Path | None, typer.Option(help="A text file with a search in each line.")] = None,
    json: JsonFlag = False,
) -> None:
    """Queue searches for the night. The same words in the same region are one search, however often added."""
    from sendonce.flows.prospecting.add_searches import add_searches
    from sendonce.wiring.searching import regions

    settings = ready_settings()
    wanted = _searches(texts, file)
    with opened_prospects(settings, make=True) as store:
        added = add_searches(
            store,
            regions(),
            TenantId(tenant),
            wanted,
            region=region,
            pages=pages,
            direction_id=direction,
        )
    if json:
        print_json([_added_view(each) for each in added])
    else:
        _say_added(added)


def _searches(texts: list[str] | None, file: Path | None) -> list[str]:
    if texts and file:
        raise BadInput("Give the words or --file, not both.")
    if texts:
        return [_printable(text) for text in texts]
    if file is None and sys.stdin.isatty():
        raise BadInput("Say what to search for, or pipe a list into this command, one a line.")
    try:
        data = file.read_bytes() if file is not None else sys.stdin.buffer.read()
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise BadInput(f"{file or 'The list'} is not UTF-8: save it as UTF-8 text.") from exc
    return [line for line in map(str.strip, text.splitlines()) if line]


def _printable(argument: str) -> str:
    """Bytes of the command line that are not UTF-8 arrive as lone surrogates, which nothing can print."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _say_added(added: list[AddedSearch] | Any) -> None:
    new = [each for each in added if each.new_pages]
    requests = sum(each.new_pages for each in new)
    if new:
        say(
            f"Queued {count_of(len(new), 'search', 'searches')}, {count_of(requests, 'request')} in all. "
            "'sendonce prospect run' submits them when the night window is open."
        )
    if known := len(added) - len(new):
        say(f"{count_of(known, 'search was', 'searches were')} known already.")


@group.command("list")
def list_(
    tenant: Tenant = DEFAULT_TENANT,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 100,
    json: JsonFlag = False,
) -> None:
    """Show searches and how far they are, the newest first."""
    settings = ready_settings()
    with opened_prospects(settings) as store:
        queries = store.searches.all(TenantId(tenant), limit)
    if json:
        print_json([_view(query) for query in queries])
        return
    short = short_ids([query.id for query in queries])
    rows = [
        (
            short[q.id],
            q.text,
            q.region.name,
            q.pages,
            q.state,
            q.results,
            q.direction_id,
            q.reason,
            q.created_at,
        )
        for q in queries
    ]
    columns = ["id", "search", "region", "pages", "state", "results", "direction", "reason", "added"]
    number = count_of(len(queries), "search", "searches")
    title = f"The newest {number}" if len(queries) == limit else number
    print_table(title, columns, rows, time_zone(settings))


@group.command()
def retry(
    name: Annotated[str, typer.Argument(help="The id of a search, or its beginning.")],
    tenant: Tenant = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Submit again what has failed, expired, or is of unknown fate. Each request is paid for again."""
    from sendonce.flows.prospecting.retry_search import retry_search

    settings = ready_settings()
    with opened_prospects(settings) as store:
        query_id, count = retry_search(store, TenantId(tenant), name, getpass.getuser())
    if json:
        print_json({"id": query_id, "queued": count})
    else:
        say(f"Queued {count_of(count, 'request')} of the search {query_id} again.")


def _added_view(added: AddedSearch) -> dict[str, Any]:
    return {**_view(added.query), "new_pages": added.new_pages}


def _view(query: SearchQuery) -> dict[str, Any]:
    return {
        "id": query.id,
        "tenant": query.tenant_id,
        "text": query.text,
        "region": query.region.name,
        "region_code": query.region.code,
        "pages": query.pages,
        "direction": query.direction_id,
        "state": query.state,
        "operations": {state.value: count for state, count in query.states.items()},
        "results": query.results,
        "reason": query.reason,
        "created_at": query.created_at,
    }
