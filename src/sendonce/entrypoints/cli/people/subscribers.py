"""sendonce subscribers …"""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.checks import count_of
from sendonce.domain.people.subscribers import (
    CONSENT,
    DEFAULT_TENANT,
    EXPORTED,
    REJECTED,
    Addition,
    ImportCounts,
    NewSubscriber,
    Subscriber,
    SubscriberStatus,
    attribute_title,
)
from sendonce.domain.people.told_states import StateRules, Told
from sendonce.entrypoints.cli.context import check_outputs, opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.mailouts.progress import measuring
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say, say_error
from sendonce.entrypoints.cli.people.columns import column_mapping
from sendonce.errors import BadInput

if TYPE_CHECKING:
    from sendonce.flows.people.import_subscribers import ImportReport
    from sendonce.ports.people import Subscribers

group = typer.Typer(name="subscribers", help="People on the opt-in list.", no_args_is_help=True)

_STATES = ", ".join(Told)

StatusOption = Annotated[SubscriberStatus | None, typer.Option(help="Only those with this status.")]


@group.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A CSV file whose first line names the columns.")],
    columns: Annotated[
        list[str] | None,
        typer.Option("--map", help="Which column is what: email=E-mail,name=Имя. May be given again."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="The file's encoding, where it is not found out.")] = "",
    rejects: Annotated[
        Path | None, typer.Option(help="Where bad lines go; FILE.rejects.csv unless told otherwise.")
    ] = None,
    status_columns: Annotated[
        list[str] | None,
        typer.Option(
            "--status-column", help="A column that tells who may be written to. May be given again."
        ),
    ] = None,
    statuses: Annotated[
        list[str] | None,
        typer.Option(
            "--status", help=f"What a value of it means: VALUE=STATUS, one of {_STATES}. May be given again."
        ),
    ] = None,
    ignored: Annotated[
        list[str] | None,
        typer.Option("--ignore-column", help="A column that only looks like one. May be given again."),
    ] = None,
    everybody: Annotated[
        Told | None, typer.Option("--as", help="What everybody in the file is, where no column says so.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would happen, and do nothing.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Add people from a CSV file. An opt-out on record here is never undone, and one in the file is kept."""
    from sendonce.flows.people.import_subscribers import import_subscribers
    from sendonce.wiring.files import csv_table, seen_keys, subscribers_in

    settings = ready_settings(quiet=True)
    mapping = column_mapping(columns or [])
    states = StateRules(
        tuple(status_columns or ()), _meanings(statuses or []), tuple(ignored or ()), everybody
    )
    keep_rejects = rejects is not None or not dry_run
    rejects = rejects or file.with_name(file.name + ".rejects.csv")
    if keep_rejects:
        check_outputs(settings, rejects, source=file)
    table = csv_table(rejects, REJECTED)
    size = file.stat().st_size if file.is_file() else None
    with (
        opened_store(settings, make=True) as store,
        measuring("Importing, bytes", size, silent=json) as progress,
        table,
    ):
        chunks = subscribers_in(
            file,
            columns=mapping,
            encoding=encoding,
            states=states,
            progress=lambda done: progress(done, size),
            announce=lambda titles: setattr(table, "titles", (*REJECTED, *titles)),
        )
        report = import_subscribers(
            store.subscribers,
            DEFAULT_TENANT,
            chunks,
            seen_keys(),
            reject=lambda bad: table.write((bad.line, bad.reason, *bad.cells)) if keep_rejects else None,
            source=f"import of {file.name}",
            dry_run=dry_run,
        )
    written = str(table.path) if table.rows else None
    if json:
        print_json({**report.as_dict(), "dry_run": dry_run, "rejects": written})
    else:
        _print_report(report, written, dry_run)
    if report.invalid and report.counts == ImportCounts():
        # Not one line was understood: a wrong file, or a wrong column.
        raise typer.Exit(1)


@group.command()
def add(
    email: Annotated[str, typer.Argument(help="The person's address.")],
    name: Annotated[str, typer.Option(help="How letters call them.")] = "",
    consent: Annotated[str, typer.Option(help="When and how they agreed; kept with them.")] = "",
    json: JsonFlag = False,
) -> None:
    """Add one person. Whoever unsubscribed, bounced or complained stays out."""
    from sendonce.flows.people.add_subscriber import add_subscriber

    person = NewSubscriber(parse_address(email), name.strip() or None, {}, consent.strip() or None)
    with opened_store(ready_settings(quiet=True), make=True) as store:
        addition = add_subscriber(store, DEFAULT_TENANT, person, getpass.getuser())
        found = store.subscribers.find(DEFAULT_TENANT, person.address)
    if json:
        print_json({"outcome": addition, **(as_dict(found) if found else {})})
    else:
        say(_ADDED[addition].format(person.address.text))


_ADDED = {
    Addition.ADDED: "{} is on the list.",
    Addition.KNOWN: "{} was on the list already; name and consent are noted where you gave them.",
    Addition.BACK: "{} is on the list again.",
}


def _meanings(given: list[str]) -> dict[str, Told]:
    meanings: dict[str, Told] = {}
    for pair in given:
        value, equals, status = pair.rpartition("=")
        if not equals or status.strip().casefold() not in set(Told):
            raise BadInput(f"--status has {pair!r}: it must be VALUE=STATUS, STATUS one of {_STATES}.")
        meanings[value.strip().casefold()] = Told(status.strip().casefold())
    return meanings


def _print_report(report: ImportReport, rejects: str | None, dry_run: bool) -> None:
    counts = report.counts
    for bad in report.bad_rows:
        say(f"  line {bad.line}: {bad.reason}")
    if report.invalid > len(report.bad_rows):
        say(f"  … and {report.invalid - len(report.bad_rows)} more.")
    if rejects:
        say(f"The invalid lines are in {rejects}: correct them there, and import that file.")
    if dry_run:
        say("Dry run: nothing was written. An import would come to this:")
    if counts.unsubscribed or counts.bounced:
        left = count_of(counts.unsubscribed, "is", "are")
        were = count_of(counts.deactivated, "of them was", "of them were")
        say(
            f"Of the people in the list {left} unsubscribed and {counts.bounced} bounced: "
            f"they get no letters. {were} active here until now."
        )
    say(
        f"{counts.inserted} added, {counts.updated} updated, {counts.unchanged} unchanged, "
        f"{report.duplicates} duplicate, {report.invalid} invalid."
    )


@group.command()
def export(
    status: StatusOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A file; stdout if not given.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write subscribers as CSV that is safe to open in a spreadsheet; with --json one object a line."""
    from sendonce.wiring.files import csv_table

    if json and output:
        raise BadInput("--json writes to stdout: leave out -o, or redirect it.")
    settings = ready_settings(quiet=True)
    check_outputs(settings, output)
    with opened_store(settings) as store:
        pages = _pages(store.subscribers, status)
        if json:
            for person in chain.from_iterable(pages):
                print_json(as_dict(person))
            return
        extra = store.subscribers.attribute_names(DEFAULT_TENANT)
        titles = (*EXPORTED, CONSENT, *map(attribute_title, extra))
        own = attrgetter(*EXPORTED, CONSENT)
        with csv_table(output, titles, even_if_empty=True) as table:
            for page in pages:
                table.write_all([(*own(person), *map(person.attributes.get, extra)) for person in page])
    if output:
        say_error(f"{count_of(table.rows, 'subscriber is', 'subscribers are')} in {output}.")


def _pages(subscribers: Subscribers, status: SubscriberStatus | None) -> Iterator[Sequence[Subscriber]]:
    """Memory does not grow with the list."""
    after = ""
    while page := subscribers.all(DEFAULT_TENANT, status=status, after=after, limit=5_000):
        yield page
        after = parse_address(page[-1].email).key


@group.command("list")
def list_(
    status: StatusOption = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 50,
    json: JsonFlag = False,
) -> None:
    """Show subscribers in the order of their addresses."""
    settings = ready_settings()
    with opened_store(settings) as store:
        people = store.subscribers.all(DEFAULT_TENANT, status=status, limit=limit)
        counts = store.subscribers.count(DEFAULT_TENANT)
    if json:
        print_json({"counts": counts, "subscribers": [as_dict(person) for person in people]})
        return
    rows = [(p.email, p.name, p.status, p.created_at) for p in people]
    title = count_of(sum(counts.values()), "subscriber")
    print_table(title, ["email", "name", "status", "added"], rows, time_zone(settings))
