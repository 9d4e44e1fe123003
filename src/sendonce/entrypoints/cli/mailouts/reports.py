"""sendonce mailout report: who got the letter, who did not, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.jobs import Books
from sendonce.domain.engine.reports import COLUMNS, row_of
from sendonce.domain.mailouts.mailouts import MailoutId
from sendonce.domain.mailouts.status_words import status_words
from sendonce.entrypoints.cli.context import check_outputs, find_mailout, opened_store, ready_settings
from sendonce.entrypoints.cli.mailouts.progress import counting
from sendonce.entrypoints.cli.output import JsonFlag, print_json, say
from sendonce.entrypoints.views import mailout_view

if TYPE_CHECKING:
    from sendonce.ports.store import Store

BAR = 40
STATES = ("sent", "failed", "dead", "in_doubt", "skipped", "scheduled", "sending")
MARKS = ("delivered", "bounced", "complained", "rejected")


def report(
    mailout_id: Annotated[str, typer.Argument(help="The mailout's id.")],
    csv: Annotated[Path | None, typer.Option("--csv", help="Write every recipient to this file.")] = None,
    errors_csv: Annotated[
        Path | None, typer.Option("--errors-csv", help="Write the failed, bounced, complained and in doubt.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Sum up a mailout, and write what became of each recipient to CSV files."""
    settings = ready_settings(quiet=True)
    check_outputs(settings, csv, errors_csv)
    with opened_store(settings) as store:
        mailout = find_mailout(store, mailout_id)
        rows = _write(store, mailout.id, csv, only_errors=False, silent=json) if csv else None
        errors = _write(store, mailout.id, errors_csv, only_errors=True, silent=json) if errors_csv else None
        books = store.jobs.books(mailout.id)
    if json:
        files = {"csv_rows": rows, "errors_csv_rows": errors}
        print_json({**mailout_view(mailout, books), **files})
        return
    say(f"Mailout {mailout.id} «{mailout.name}»: {status_words(mailout)}")
    for line in chart(books):
        say(line)
    for count, path in ((rows, csv), (errors, errors_csv)):
        if path and count is not None:
            say(f"{count_of(count, 'recipient is', 'recipients are')} in {path}.")


def _write(store: Store, mailout_id: MailoutId, path: Path, *, only_errors: bool, silent: bool) -> int:
    from sendonce.flows.mailouts.write_report import recipients
    from sendonce.wiring.files import csv_table

    with (
        counting(f"Writing {path.name}", silent=silent) as tick,
        csv_table(path, COLUMNS, even_if_empty=True) as table,
    ):
        for found in recipients(store.jobs, mailout_id, only_errors=only_errors):
            table.write(row_of(found))
            if table.rows % 1_000 == 0:
                tick(1_000)
    return table.rows


def chart(books: Books) -> list[str]:
    """The books as bars; the states sum up to what was planned, the marks are of those sent."""
    lines = [f"{'planned':>12} {books.planned:>9}"]
    lines += [_bar(name, getattr(books, name), books.planned) for name in STATES if getattr(books, name)]
    lines += [
        _bar(f"· {name}", getattr(books, name), books.planned) for name in MARKS if getattr(books, name)
    ]
    if books.duplicates:
        lines.append(f"{'DUPLICATES':>12} {books.duplicates:>9} a second copy left")
    return lines


def _bar(name: str, count: int, whole: int) -> str:
    length = max(round(BAR * count / whole), 1)
    return f"{name.replace('_', ' '):>12} {count:>9} {'█' * length:<{BAR}} {100 * count / whole:5.1f} %"
