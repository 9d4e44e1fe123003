"""Settings in, files for people out: reports and previews beside the state."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from sendonce.errors import BadInput, Unavailable
from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.domain.engine.addresses import Address
    from sendonce.domain.mailouts.previews import Preview
    from sendonce.ports.store import Store


def write_due_reports(settings: Settings, store: Store) -> None:
    from sendonce.flows.mailouts.write_reports import write_reports

    write_reports(store, lambda mailout_id: write_report(settings, store, mailout_id))


def write_report(settings: Settings, store: Store, mailout_id: str) -> Path:
    """Every recipient of a mailout and what became of the letter, as a CSV file beside the state.

    The file appears when it is whole: whoever writes it may be stopped at any time.
    """
    from sendonce.adapters.reports_csv import CsvTable
    from sendonce.flows.mailouts.report_mailout import COLUMNS, recipients, row_of

    path = _report_file(settings, mailout_id)
    draft = path.with_name(f".{mailout_id}-{uuid.uuid4()}.csv")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with CsvTable(draft, COLUMNS, even_if_empty=True) as table:
                for recipient in recipients(store.jobs, mailout_id):
                    table.write(row_of(recipient))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as exc:
        raise BadInput(f"The report {path} cannot be written: {exc.strerror}. Set STATE_DIR.") from exc
    return path


def rewrite_reports_to(settings: Settings, store: Store, address: Address) -> int:
    """Write anew the report files of this machine that have a line for a person, as after an erasure; how
    many there were. Raises Unavailable with the files that it could not write."""
    mailouts = {letter.job.mailout_id for letter in store.people.file_of(address).letters}
    written, left = 0, []
    for mailout_id in sorted(mailouts):
        path = _report_file(settings, mailout_id)
        try:
            if path.exists():
                write_report(settings, store, mailout_id)
                written += 1
        except (BadInput, OSError):
            left.append(str(path))
    if left:
        raise Unavailable(
            "The database has nothing of the person any more, but these reports cannot be written anew and "
            f"may still hold the address: {', '.join(left)}. Delete them, or erase again as their owner."
        )
    return written


def _report_file(settings: Settings, mailout_id: str) -> Path:
    return settings.state_dir / "reports" / f"{mailout_id}.csv"


def write_preview(settings: Settings, mailout_id: str, preview: Preview) -> Path:
    from sendonce.adapters.preview_page import write_preview

    return write_preview(settings.state_dir / "previews", mailout_id, preview)
