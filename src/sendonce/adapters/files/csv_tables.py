"""CSV files for people: reports, exports and rejected lines, safe to open in a spreadsheet."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from sendonce.adapters.files.csv_cells import all_harmless, spreadsheet_writer
from sendonce.errors import BadInput


def refuse_to_overwrite(outputs: Iterable[Path], kept: Iterable[tuple[Path, str]]) -> None:
    """Raises BadInput where an output is a file that must stay, or another output.

    ``kept`` says of each file what it is. Devices and pipes have nothing to lose. Nor is a symbolic link
    followed: ``_private`` would refuse it later, in the middle of the work.
    """
    taken = list(kept)
    for output in outputs:
        for path, what in taken:
            if _is_same_file(output, path):
                raise BadInput(f"{str(output)!r} is {what}: writing would destroy it. Name another file.")
        if output.is_symlink() and not _is_device(output):
            raise _link_refused(output)
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
        self.titles = titles
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
        self.write_all([tuple(row)])

    def write_all(self, rows: Sequence[Sequence[object]]) -> None:
        """Rows of the same length. Thousands at once cost a third of what they cost one by one."""
        if self._writer is None:
            self._begin()
        self._writer.writerows(_cells(rows))
        self.rows += len(rows)

    def _begin(self) -> None:
        self._writer = spreadsheet_writer(self._open())
        self._writer.writerows(_cells([self.titles]))

    def _open(self) -> TextIO:
        if self.path is None:
            return sys.stdout
        try:
            file = open(_private(self.path), "w", encoding="utf-8", newline="")  # noqa: SIM115
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                raise _link_refused(self.path) from exc
            raise BadInput(
                f"{str(self.path)!r} cannot be written: {exc.strerror}. Name another file."
            ) from exc
        self._closing.enter_context(file)
        file.write("\ufeff")  # utf-8-sig would do so too, and encode each line in Python
        return file


def _is_device(path: Path) -> bool:
    return path.is_absolute() and path.parts[1:2] == ("dev",)


def _link_refused(path: Path) -> BadInput:
    return BadInput(
        f"{str(path)!r} is a symbolic link: writing would change the file behind it. "
        "Name that file itself, or another."
    )


def _private(path: Path) -> int:
    """A file to write, for its owner's eyes only: it holds addresses.

    A link at its end is not followed, for whoever put it there chooses what is overwritten. The links in
    /dev, such as /dev/stdout, are the system's own.
    """
    follow = 0 if _is_device(path) else os.O_NOFOLLOW
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | follow, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, 0o600)
    return descriptor


def _cells(rows: Sequence[Sequence[object]]) -> Iterable[Sequence[str]]:
    columns = zip(*rows, strict=True)
    texts = ([value if type(value) is str else _text(value) for value in column] for column in columns)
    return zip(*map(all_harmless, texts), strict=True)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return str(value)
