"""sendonce letters …"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.sites import shown_domain
from sendonce.domain.prospecting.written_letters import ShownStatus, WrittenLetter
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
    from sendonce.domain.people.directions import Direction
    from sendonce.ports.prospecting import ProspectingStore

group = typer.Typer(
    name="letters", help="Letters to companies: written, reviewed, sent.", no_args_is_help=True
)

TenantOption = Annotated[str, typer.Option("--tenant", help="Whose letters.")]
DirectionOption = Annotated[str | None, typer.Option("--direction", help="Only those of one direction.")]
StatusOption = Annotated[ShownStatus | None, typer.Option(help="Only those with this status.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The beginning of its id is enough.")]
_PAGE = 500
_EXPORTED = (
    *("id", "direction", "company", "domain", "recipient", "status", "written_by", "language", "subject"),
    *("text", "reviewer", "note", "model", "price", "slot_at", "sent_at", "last_error", "created_at"),
)


@group.command("list")
def list_(
    status: StatusOption = None,
    direction: DirectionOption = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000)] = 50,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Show letters in the order in which they were written."""
    settings = ready_settings(quiet=True)
    with opened_prospects(settings) as store:
        found = store.written_letters.all(
            TenantId(tenant), status=status, direction_id=direction, limit=limit
        )
        counts = store.written_letters.count(TenantId(tenant), direction)
    if json:
        print_json({"counts": counts, "letters": [as_row(letter) for letter in found]})
        return
    ids = short_ids([letter.id for letter in found])
    rows = [
        (ids[it.id], shown_domain(it.domain), it.made.recipient, it.made.subject, it.status, it.slot_at)
        for it in found
    ]
    total = sum(number for word, number in counts.items() if status is None or word in status.covers)
    of_all = ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))
    title = shown_of(len(found), total, "letter") + (f". Of all: {of_all}" if of_all else "")
    print_table(title, ["id", "company", "to", "subject", "status", "leaves"], rows, time_zone(settings))


@group.command()
def show(letter: IdArgument, tenant: TenantOption = DEFAULT_TENANT, json: JsonFlag = False) -> None:
    """Show a letter as it is sent, with its checks."""
    from sendonce.entrypoints.cli.prospecting.review import show_letter
    from sendonce.flows.prospecting.review_letter import find_letter

    with opened_prospects(ready_settings(quiet=True)) as store:
        found = find_letter(store.written_letters, TenantId(tenant), letter)
        direction = _direction_of(store, found)
    if json:
        print_json({**as_row(found), "checks": found.made.checks, "brief": found.made.brief})
    else:
        show_letter(found, direction)


@group.command()
def approve(
    letters: Annotated[list[str] | None, typer.Argument(metavar="ID…")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that wait and passed every check.")] = False,
    direction: DirectionOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Let letters be sent."""
    from sendonce.flows.prospecting.review_letter import approve_letter, find_letter

    if bool(letters) == everything:
        raise BadInput("Name letters by their ids, or give --all for those that passed every check.")
    with opened_prospects(ready_settings(quiet=True)) as store:
        desk, left = store.written_letters, list[WrittenLetter]()
        if letters:
            chosen = [find_letter(desk, TenantId(tenant), name) for name in letters]
        else:
            waiting = list(_every(store, tenant, ShownStatus.WAITING, direction))
            chosen = [it for it in waiting if _is_fine(it)]
            left = [it for it in waiting if not _is_fine(it)]
        for each in chosen:
            approve_letter(desk, each, getpass.getuser())
    if json:
        print_json({"approved": [it.id for it in chosen], "left": [it.id for it in left]})
        return
    say(f"{count_of(len(chosen), 'letter')} approved.")
    if left:
        say(
            f"{count_of(len(left), 'letter fails', 'letters fail')} a check or may not be sent. Read them "
            "with 'sendonce letters review', or approve them by their ids."
        )


@group.command()
def reject(
    letters: Annotated[list[str], typer.Argument(metavar="ID…")],
    note: Annotated[str | None, typer.Option(help="Why.")] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Let letters not be sent. One that is planned is taken back for good, unless it has left."""
    from sendonce.flows.prospecting.review_letter import find_letter, reject_letter

    with opened_prospects(ready_settings(quiet=True)) as store:
        chosen = [find_letter(store.written_letters, TenantId(tenant), name) for name in letters]
        for each in chosen:
            reject_letter(store, each, getpass.getuser(), note)
    if json:
        print_json({"rejected": [letter.id for letter in chosen]})
    else:
        say(f"{count_of(len(chosen), 'letter')} rejected.")


@group.command()
def edit(
    letter: IdArgument,
    subject: Annotated[str | None, typer.Option(help="Another subject.")] = None,
    file: Annotated[Path | None, typer.Option("--text", help="A file with another text; - is stdin.")] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Put a letter into other words: in your editor, or from options. It waits for approval then."""
    from sendonce.entrypoints.cli.prospecting.review import edited_in_editor, failed_checks
    from sendonce.flows.prospecting.review_letter import edit_letter, find_letter

    settings = ready_settings(quiet=True)
    with opened_prospects(settings) as store:
        found = find_letter(store.written_letters, TenantId(tenant), letter)
        if subject is None and file is None:
            words = edited_in_editor(settings.editor, found.made.subject, found.made.text)
        else:
            text = found.made.text if file is None else bytes_of(file).decode("utf-8-sig", "replace")
            words = (subject if subject is not None else found.made.subject, text)
        checks = edit_letter(store.written_letters, found, *words, getpass.getuser())
    if json:
        print_json({"id": found.id, "checks": [as_dict(check) for check in checks]})
    else:
        say("Kept. It waits for approval." + failed_checks(map(asdict, checks)))


@group.command()
def review(
    direction: DirectionOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Read waiting letters one after another: approve, reject, edit or skip each with a key."""
    from sendonce.entrypoints.cli.prospecting.review import review_letters

    settings = ready_settings(quiet=True)
    with opened_prospects(settings) as store:
        waiting = _every(store, tenant, ShownStatus.WAITING, direction)
        actor = getpass.getuser()
        review_letters(store, waiting, lambda it: _direction_of(store, it), actor, settings.editor)


@group.command()
def export(
    status: StatusOption = None,
    direction: DirectionOption = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A file; else stdout.")] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    json: JsonFlag = False,
) -> None:
    """Write letters as CSV that is safe to open in a spreadsheet; with --json one object a line."""
    from sendonce.wiring.files import csv_table

    if json and output:
        raise BadInput("--json writes to stdout: leave out -o, or redirect it.")
    settings = ready_settings(quiet=True)
    check_outputs(settings, output)
    with opened_prospects(settings) as store:
        rows = map(as_row, _every(store, tenant, status, direction))
        if json:
            for row in rows:
                print_json(row)
            return
        with csv_table(output, _EXPORTED, even_if_empty=True) as table:
            for row in rows:
                table.write([row[column] for column in _EXPORTED])
    if output:
        say_error(f"{count_of(table.rows, 'letter is', 'letters are')} in {output}.")


def as_row(letter: WrittenLetter) -> dict[str, Any]:
    """As programs see it."""
    made, outcome = letter.made, letter.outcome
    return {
        "id": letter.id,
        "direction": made.direction_id,
        "company": letter.company_name,
        "domain": letter.domain,
        "recipient": made.recipient,
        "status": letter.status,
        "written_by": made.written_by,
        "language": made.language,
        "subject": made.subject,
        "text": made.text,
        "failed_checks": [check["name"] for check in made.checks if not check["ok"]],
        "reviewer": made.reviewer,
        "note": made.note or letter.unfit,
        "model": made.model,
        "price": made.price,
        "job": letter.job_id,
        "slot_at": letter.slot_at,
        "sent_at": outcome.settled_at if outcome and outcome.state == "sent" else None,
        "last_error": outcome.reason if outcome else None,
        "created_at": letter.created_at,
    }


def _every(
    store: ProspectingStore, tenant: str, status: ShownStatus | None, direction: str | None
) -> Iterator[WrittenLetter]:
    """Page by page: memory does not grow with the list."""
    after = ""
    while page := store.written_letters.all(
        TenantId(tenant), status=status, direction_id=direction, after=after, limit=_PAGE
    ):
        yield from page
        after = page[-1].id


def _is_fine(letter: WrittenLetter) -> bool:
    return letter.unfit is None and all(check["ok"] for check in letter.made.checks)


def _direction_of(store: ProspectingStore, letter: WrittenLetter) -> Direction:
    from sendonce.flows.people.add_client import require_direction

    return require_direction(store, letter.tenant_id, letter.made.direction_id)


def bytes_of(file: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc
