"""sendonce suppression …"""

from __future__ import annotations

import getpass
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from sendonce.domain.addresses import parse_address
from sendonce.domain.subscribers import DEFAULT_TENANT, EXPORTED
from sendonce.domain.suppressions import EVERYBODY, Suppression, SuppressionReason
from sendonce.entrypoints.cli.context import opened_store, ready_settings
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import BadInput, NotFound

if TYPE_CHECKING:
    from sendonce.adapters.stores.sql import SqlStore

group = typer.Typer(name="suppression", help="Addresses that must not be written to.", no_args_is_help=True)

Everybody = Annotated[bool, typer.Option("--global", help="For every tenant, not only the default one.")]
COLUMNS = ["address", "scope", "reason", "note", "created_at"]


def _scope(everybody: bool) -> str:
    return EVERYBODY if everybody else DEFAULT_TENANT


@group.command()
def add(
    address: str,
    note: Annotated[str, typer.Option(help="Why.")] = "",
    everybody: Everybody = False,
    json: JsonFlag = False,
) -> None:
    """Never write to this address again."""
    target = parse_address(address)
    with opened_store(ready_settings(), make=True) as store:
        added = store.suppressions.add(_scope(everybody), target, SuppressionReason.MANUAL, note or None)
    if json:
        print_json({"address": target.text, "added": added})
    else:
        say(f"{target.text} is suppressed." if added else f"{target.text} was suppressed already.")


@group.command()
def remove(address: str, everybody: Everybody = False, json: JsonFlag = False) -> None:
    """Allow an address again; kept in the audit log."""
    target = parse_address(address)
    with opened_store(ready_settings()) as store:
        removed = store.suppressions.remove(_scope(everybody), target, getpass.getuser())
    if not removed:
        raise NotFound(f"{target.text} is not suppressed in this scope.")
    if json:
        print_json({"address": target.text, "removed": True})
    else:
        say(f"{target.text} may be written to again.")


@group.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 100,
    json: JsonFlag = False,
) -> None:
    """Show suppressed addresses."""
    with opened_store(ready_settings()) as store:
        found = store.suppressions.all(limit=limit)
    if json:
        print_json([as_dict(item) for item in found])
        return
    print_table(f"{len(found)} suppressions", COLUMNS, map(_row, found))


def _row(item: Suppression) -> tuple[object, ...]:
    address = item.address or f"(erased, key {item.key[:8]}…)"
    return address, item.scope, item.reason, item.note, item.created_at


@group.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(help="One address a line, or a CSV whose first column is the address.")
    ],
    everybody: Everybody = False,
    encoding: Annotated[str, typer.Option(help="The file's encoding, where it is not found out.")] = "",
    json: JsonFlag = False,
) -> None:
    """Suppress every address of a file."""
    added = known = 0
    bad: list[dict[str, object]] = []
    with opened_store(ready_settings(), make=True) as store:
        for line, text in _addresses(file, encoding):
            try:
                address = parse_address(text)
            except BadInput as exc:
                bad.append({"line": line, "reason": str(exc)})
                continue
            new = store.suppressions.add(_scope(everybody), address, SuppressionReason.MANUAL, file.name)
            added, known = added + new, known + (not new)
    if json:
        print_json({"added": added, "known": known, "invalid": len(bad), "invalid_lines": bad})
    else:
        say(f"{added} added, {known} were there already, {len(bad)} invalid.")
        for item in bad[:20]:
            say(f"  line {item['line']}: {item['reason']}")
    if bad:
        # An opt-out that was not understood is somebody who will be written to: that is not success.
        raise typer.Exit(1)


def _addresses(file: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """The first column, in any encoding and with any delimiter that subscribers' files may have."""
    from sendonce.adapters.sources.text_encoding import open_text

    try:
        with file.open("rb") as raw, open_text(raw, str(file), encoding or None) as source:
            header = source.readline()
            if header and _first_cell(header).lower() not in {"", "address", "email", "e-mail", "почта"}:
                yield 1, _first_cell(header)
            delimiter = max(",;\t", key=header.count)
            titles = header.replace('"', "").rstrip("\r\n").split(delimiter)
            ours = titles == COLUMNS or tuple(titles[: len(EXPORTED)]) == EXPORTED
            following = _exported(source, delimiter, len(titles)) if ours else _plain_lines(source)
            yield from ((line, first) for line, first in following if first)
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc


def _first_cell(line: str) -> str:
    return re.split("[,;\t]", line.lstrip("\ufeff"), maxsplit=1)[0].strip().strip('"').strip()


def _plain_lines(source: TextIO) -> Iterator[tuple[int, str]]:
    return enumerate(map(_first_cell, source), 2)


def _exported(source: TextIO, delimiter: str, width: int) -> Iterator[tuple[int, str]]:
    """The addresses of an export of ours as they were before it was made safe for spreadsheets.

    Its notes may have line breaks in them, so a line is not always a record. A record that is broken
    is read for its address all the same: an opt-out is not to be lost.
    """
    from sendonce.adapters.csv_cells import unguarded
    from sendonce.adapters.sources.csv_records import CsvRecords

    for block in CsvRecords(source).blocks(delimiter, width):
        firsts = block.columns[0] if block.columns else ["".join(cells[:1]) for cells in block.records]
        found = [*zip(block.lines, firsts, strict=True), *((n, _first_cell(raw)) for n, raw, _ in block.bad)]
        for line, first in sorted(found):
            yield line + 1, unguarded(first.strip())


@group.command()
def export(json: JsonFlag = False) -> None:
    """Write all suppressions to stdout as CSV. Erased people have no address any more and are left out."""
    from sendonce.adapters.csv_cells import harmless, spreadsheet_writer

    with opened_store(ready_settings()) as store:
        if json:
            print_json([as_dict(item) for item in _everything(store)])
            return
        writer = spreadsheet_writer(sys.stdout)
        writer.writerow(COLUMNS)
        for item in _everything(store):
            if item.address:
                row = (item.address, item.scope, item.reason, item.note, item.created_at.isoformat())
                writer.writerow([harmless(str(cell or "")) for cell in row])


def _everything(store: SqlStore) -> Iterator[Suppression]:
    after = ("", "")
    while page := store.suppressions.all(after=after, limit=1000):
        yield from page
        after = (page[-1].key, page[-1].scope)
