"""CSV files for people: reports, exports and rejected lines, safe to open in a spreadsheet."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from sendonce.adapters.csv_cells import harmless, spreadsheet_writer
from sendonce.errors import BadInput


def refuse_to_overwrite(outputs: Iterable[Path], kept: Iterable[tuple[Path, str]]) -> None:
    """Raises BadInput where an output is a file that must stay, or another output.

    ``kept`` says of each file what it is. Devices and pipes have nothing to lose.
    """
    taken = list(kept)
    for output in outputs:
        for path, what in taken:
            if _is_same_file(output, path):
                raise BadInput(f"{str(output)!r} is {what}: writing would destroy it. Name another file.")
        taken.append((output, "the other output too"))


def _is_same_file(one: Path, other: Path) -> bool:
    """However they are spelled or linked, and whether they are there yet or not."""
    try:
        return one.samefile(other) and one.is_file()
    except OSError:
        return one.resolve() == other.resolve()


class CsvTable:
    """A CSV file with a title line, written as rows come; nothing is there before the first.

    Without a path it goes to stdout. Spreadsheets take a file for UTF-8 by its byte order mark.
    """

    def __init__(self, path: Path | None, titles: Sequence[str], *, even_if_empty: bool = False) -> None:
        self.path = path
        self.rows = 0
        self._titles = titles
        self._even_if_empty = even_if_empty
        self._closing = ExitStack()
        self._writer: Any = None

    def __enter__(self) -> CsvTable:
        if self._even_if_empty:
            self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def write(self, row: Iterable[object]) -> None:
        if self._writer is None:
            self._begin()
        self._writer.writerow([_cell(value) for value in row])
        self.rows += 1

    def _begin(self) -> None:
        self._writer = spreadsheet_writer(self._open())
        self._writer.writerow(self._titles)

    def _open(self) -> TextIO:
        if self.path is None:
            return sys.stdout
        try:
            file = self.path.open("w", encoding="utf-8-sig", newline="")
        except OSError as exc:
            raise BadInput(
                f"{str(self.path)!r} cannot be written: {exc.strerror}. Name another file."
            ) from exc
        return self._closing.enter_context(file)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return harmless(str(value))
