"""sendonce companies …"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.prospecting.sites import Site, shown_domain
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table
from sendonce.errors import BadInput

group = typer.Typer(name="companies", help="Companies that searches found.", no_args_is_help=True)


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
