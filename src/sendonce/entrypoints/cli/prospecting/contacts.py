"""sendonce contacts …"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.contact_audits import read_truth
from sendonce.domain.prospecting.contacts import Contacts
from sendonce.domain.prospecting.kept_contacts import Contact, ContactKind
from sendonce.domain.prospecting.sites import SiteKind, shown_domain
from sendonce.entrypoints.cli.context import check_outputs, opened_prospects, ready_settings
from sendonce.entrypoints.cli.output import (
    JsonFlag,
    as_dict,
    print_json,
    print_table,
    say,
    say_error,
    shown_of,
)
from sendonce.errors import BadInput

if TYPE_CHECKING:
    from sendonce.ports.prospecting import ProspectingStore

group = typer.Typer(name="contacts", help="E-mails and phones of companies.", no_args_is_help=True)

KindOption = Annotated[ContactKind | None, typer.Option(help="Only e-mails, or only phones.")]
# The columns of an export, and the keys of --json.
EXPORTED = (
    *("company_id", "domain", "kind", "value", "quality", "source", "source_url", "extension", "role"),
    *("primary", "takes_mail", "freemail", "trouble", "created_at", "last_seen_at"),
)


@group.command()
def extract(
    file: Annotated[Path, typer.Argument(help="A saved page, in whatever encoding it is.")],
    url: Annotated[str, typer.Option("--url", help="Where the page is from.")] = "",
    json: JsonFlag = False,
) -> None:
    """Show which contacts a saved page yields, and where on it they are. Fetches nothing."""
    from sendonce.wiring.prospecting import contact_reader, site_reader

    if url and site_reader().read(url).kind is SiteKind.INVALID:
        raise BadInput(f"--url {url!r} is no address on the web. Give one such as https://firma.ru/kontakty.")
    contacts = contact_reader().read(_bytes_of(file), url)
    if json:
        print_json(as_dict(contacts))
    else:
        _show(contacts)


@group.command()
def enrich(
    limit: Annotated[int | None, typer.Option(min=1, help="Visit so many companies at the most.")] = None,
    json: JsonFlag = False,
) -> None:
    """Visit the sites of companies that wait for it, and keep their contacts and facts."""
    from sendonce.entrypoints.pipeline import seen_alive
    from sendonce.wiring.prospecting import enricher

    settings = ready_settings(quiet=True)
    with opened_prospects(settings) as store:
        visits = enricher(settings, store)
        with seen_alive(settings, store, visits.worker):
            done = asyncio.run(visits.run(limit))
    if json:
        print_json(as_dict(done))
        return
    say(
        f"{count_of(done.visited, 'company was', 'companies were')} visited, {done.with_contacts} of them "
        f"with contacts; {count_of(done.new_contacts, 'contact is', 'contacts are')} new. "
        f"{done.put_off} put off, {done.unreachable} unreachable."
    )


@group.command("list")
def list_(
    kind: KindOption = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 50,
    json: JsonFlag = False,
) -> None:
    """Show contacts of companies, in the order in which they were found."""
    settings = ready_settings()
    with opened_prospects(settings) as store:
        found = store.contacts.all(DEFAULT_TENANT, kind=kind, limit=limit)
        counts = store.contacts.count(DEFAULT_TENANT)
        rows = [_row(contact) for contact in found]
    if json:
        print_json({"counts": counts, "contacts": [dict(zip(EXPORTED, row, strict=True)) for row in rows]})
        return
    shown = [(row[1], *row[3:6], *row[8:11]) for row in rows]
    columns = ["company", "contact", "quality", "source", "role", "primary", "takes mail"]
    total = counts.get(kind, 0) if kind else sum(counts.values())
    print_table(shown_of(len(found), total, "contact"), columns, shown)


@group.command()
def export(
    kind: KindOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file; stdout if not given.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write contacts as CSV that is safe to open in a spreadsheet; with --json one object a line."""
    from sendonce.wiring.files import csv_table

    if json and output:
        raise BadInput("--json writes to stdout: leave out -o, or redirect it.")
    settings = ready_settings(quiet=True)
    check_outputs(settings, output)
    with opened_prospects(settings) as store:
        if json:
            for row in _all_rows(store, kind):
                print_json(dict(zip(EXPORTED, row, strict=True)))
            return
        with csv_table(output, EXPORTED, even_if_empty=True) as table:
            for row in _all_rows(store, kind):
                table.write(row)
    if output:
        say_error(f"{count_of(table.rows, 'contact is', 'contacts are')} in {output}.")


@group.command()
def audit(
    truth: Annotated[
        Path,
        typer.Argument(help='JSON such as {"firma.ru": {"emails": [], "phones": []}}.'),
    ],
    json: JsonFlag = False,
) -> None:
    """Measure precision and recall of what is kept against a list of true contacts."""
    from sendonce.flows.prospecting.audit_contacts import audit_contacts

    expected = read_truth(_json_in(truth))
    with opened_prospects(ready_settings(quiet=True)) as store:
        audits = audit_contacts(store, DEFAULT_TENANT, expected)
    if json:
        print_json(
            {
                name: {**as_dict(found), "precision": found.precision, "recall": found.recall}
                for name, found in audits.items()
            }
        )
        return
    columns = ["", "true", "kept", "right", "precision", "recall"]
    rows = [
        (name, found.true, found.kept, found.right, f"{found.precision:.3f}", f"{found.recall:.3f}")
        for name, found in audits.items()
    ]
    print_table(count_of(len(expected), "company", "companies"), columns, rows)
    for what in ("missed", "wrong"):
        for found in audits.values():
            for domain, value in getattr(found, what):
                say(f"{what}: {value} ({shown_domain(domain)})")


def _json_in(file: Path) -> Any:
    import json

    try:
        return json.loads(_bytes_of(file))
    except ValueError as exc:
        raise BadInput(f"{file} is not JSON: {exc}. Give the file of true contacts.") from exc


def _all_rows(store: ProspectingStore, kind: ContactKind | None) -> Iterator[tuple[object, ...]]:
    """Page by page: memory does not grow with the list."""
    after = ""
    while page := store.contacts.all(DEFAULT_TENANT, kind=kind, after=after, limit=2_000):
        yield from map(_row, page)
        after = page[-1].id


def _row(contact: Contact) -> tuple[object, ...]:
    seen = contact.seen
    return (
        contact.company_id,
        shown_domain(contact.domain),
        seen.kind.value,
        seen.value,
        seen.quality,
        seen.source,
        seen.source_url,
        seen.attributes.get("extension"),
        seen.role,
        contact.primary,
        seen.takes_mail.value if seen.takes_mail else None,
        seen.freemail,
        contact.trouble.value if contact.trouble else None,
        contact.created_at,
        contact.last_seen_at,
    )


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc


def _show(contacts: Contacts) -> None:
    emails = [
        (
            email.value,
            email.quality,
            email.source.value,
            email.role,
            _mark(email.freemail),
            _mark(email.primary),
        )
        for email in contacts.emails
    ]
    columns = ["e-mail", "quality", "source", "role", "freemail", "primary"]
    print_table(count_of(len(emails), "e-mail"), columns, emails)
    phones = [
        (phone.value, phone.extension, phone.quality, phone.source.value, _mark(phone.primary))
        for phone in contacts.phones
    ]
    print_table(count_of(len(phones), "phone"), ["phone", "ext.", "quality", "source", "primary"], phones)
    for name, numbers in (("ИНН", contacts.inn), ("ОГРН", contacts.ogrn)):
        if numbers:
            say(f"{name}: {', '.join(numbers)}")


def _mark(yes: bool) -> str:
    return "yes" if yes else ""
