"""Reports as CSV files: one for each mailout, with a line for each recipient."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path

from sendonce.adapters.files.csv_tables import CsvTable
from sendonce.domain.engine.reports import COLUMNS, RecipientOutcome, row_of
from sendonce.errors import BadInput


class ReportFolder:
    """ports.Reports in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def place_of(self, mailout_id: str) -> str:
        return str(self._file(mailout_id))

    def has(self, mailout_id: str) -> bool:
        try:
            return self._file(mailout_id).exists()
        except OSError as exc:
            raise BadInput(f"The report {self._file(mailout_id)} cannot be seen: {exc.strerror}.") from exc

    def put(self, mailout_id: str, recipients: Iterable[RecipientOutcome]) -> None:
        """The file appears when it is whole: whoever writes it may be stopped at any time."""
        path = self._file(mailout_id)
        draft = path.with_name(f".{mailout_id}-{uuid.uuid4()}.csv")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                with CsvTable(draft, COLUMNS, even_if_empty=True) as table:
                    for recipient in recipients:
                        table.write(row_of(recipient))
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as exc:
            raise BadInput(f"The report {path} cannot be written: {exc.strerror}. Set STATE_DIR.") from exc

    def read(self, mailout_id: str) -> bytes:
        try:
            return self._file(mailout_id).read_bytes()
        except OSError as exc:
            raise BadInput(f"The report {self._file(mailout_id)} cannot be read: {exc.strerror}.") from exc

    def _file(self, mailout_id: str) -> Path:
        return self._folder / f"{mailout_id}.csv"
