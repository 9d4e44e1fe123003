"""Subscribers from a CSV file: streamed, bounded in memory, every bad line told with its number.

One bad line never costs its neighbours. A quote that is not closed would swallow the rest of the file;
here a record may span a few lines only, and what an unclosed quote took is read again line by line.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sendonce.domain.addresses import parse_address
from sendonce.domain.subscribers import BadRow, SubscriberRow
from sendonce.errors import BadInput

EMAIL_HEADERS = frozenset({"email", "e-mail", "mail", "почта"})
NAME_HEADERS = frozenset({"name", "имя", "first name"})

_DELIMITERS = ",;\t"
_MAX_LINE = 256 * 1024
_MAX_LINES_OF_RECORD = 50
_MAX_COLUMNS = 500
_SHOWN_LENGTH = 200

_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what surrogateescape makes of undecodable bytes
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_BREAK = re.compile("[\r\n]")


def read_subscribers(path: str | Path) -> Iterator[SubscriberRow | BadRow]:
    """The rows of a UTF-8 file whose first line names the columns.

    Raises BadInput, when the first row is asked for, if there is no such file or no e-mail column.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield from _rows(file, str(path))
    except OSError as exc:
        raise BadInput(
            f"Cannot read {str(path)!r}: {exc.strerror}. Check the path and its permissions."
        ) from exc


def _rows(file: TextIO, path: str) -> Iterator[SubscriberRow | BadRow]:
    lines = _Lines(file)
    header = _header_line(lines, path)
    delimiter = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", header).count)
    columns = _Columns.of(next(csv.reader([header], delimiter=delimiter), []), path)
    for line, record in _records(lines, delimiter):
        row = columns.read(line, record) if isinstance(record, list) else record
        if row is not None:
            yield row


class _RecordTooLong(Exception):
    pass


class _Lines:
    """Lines of a file, bounded in length. ``record`` collects those of the record that is being read."""

    def __init__(self, file: TextIO) -> None:
        self.record: list[str] = []
        self._again: deque[str] = deque()
        self._readline = file.readline

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else self._readline(_MAX_LINE)
        if not line:
            raise StopIteration
        record = self.record
        record.append(line)
        if len(record) > _MAX_LINES_OF_RECORD:
            raise _RecordTooLong("a quote is not closed")
        if len(line) >= _MAX_LINE:
            self._skip_rest_of(line)
            raise _RecordTooLong(f"the line has {_MAX_LINE} characters or more")
        return line

    def give_back_all_but_first(self) -> None:
        """After an error, so that only the line where the trouble began is lost."""
        self._again.extendleft(reversed(self.record[1:]))

    def _skip_rest_of(self, line: str) -> None:
        rest = line
        while rest and rest[-1] not in "\r\n":
            rest = self._readline(_MAX_LINE)
        self.record[-1] = line + "\n"  # whole now, should it be given back


def _records(lines: _Lines, delimiter: str) -> Iterator[tuple[int, list[str] | BadRow]]:
    """Each record with the number of its first line; the header was line 1."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line = 2
    while True:
        lines.record.clear()
        try:
            record = next(reader)
        except StopIteration:
            return
        except (csv.Error, _RecordTooLong) as exc:
            yield line, BadRow(line, _shown(lines.record[0]), _in_our_words(exc))
            lines.give_back_all_but_first()
            line += 1
        else:
            yield line, record
            line += len(lines.record)


def _in_our_words(exc: Exception) -> str:
    complaint = str(exc)
    if complaint == "unexpected end of data":
        return "a quote is not closed"
    if "expected after" in complaint:
        return "a closing quote is followed by more text; a quote inside quotes is written twice"
    return complaint


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where to find what in a record."""

    width: int
    email: int
    name: int | None
    attributes: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, header: list[str], path: str) -> _Columns:
        if len(header) > _MAX_COLUMNS:
            raise BadInput(f"{path!r} has {len(header)} columns, the limit is {_MAX_COLUMNS}.")
        titles = [" ".join(title.split()).casefold() for title in header]
        email = next((index for index, title in enumerate(titles) if title in EMAIL_HEADERS), None)
        if email is None:
            found = _shown(", ".join(filter(None, titles)) or "nothing")
            raise BadInput(
                f"{path!r} has no e-mail column: its first line names {found}. "
                "Name the column with the addresses 'email'."
            )
        name = next((index for index, title in enumerate(titles) if title in NAME_HEADERS), None)
        return cls(len(header), email, name, _attributes(titles, {email, name}))

    def read(self, line: int, cells: list[str]) -> SubscriberRow | BadRow | None:
        """A row, or why not; None for a record with nothing in it."""
        together = "".join(cells)
        if not together or together.isspace():
            return None
        if len(cells) < self.width:
            cells += [""] * (self.width - len(cells))
        # isprintable() is false for all that is unfit for a letter, and for a few things that are fit.
        reason = None if together.isprintable() and len(cells) == self.width else self._objection(cells)
        if reason is None:
            try:
                address = parse_address(cells[self.email].strip())
            except BadInput as exc:
                reason = str(exc)
            else:
                name = cells[self.name].strip() if self.name is not None else ""
                values = {key: value for index, key in self.attributes if (value := cells[index].strip())}
                return SubscriberRow(line, address, name or None, values)
        return BadRow(line, _shown(", ".join(cells)), reason)

    def _objection(self, cells: list[str]) -> str | None:
        together = "".join(cells)
        if "\x00" in together:
            return "it contains a NUL byte"
        if _NOT_UTF8.search(together):
            return "it is not UTF-8. Save the file as «CSV UTF-8»"
        control = _CONTROL.search(together)
        if control:
            return f"it contains the control character U+{ord(control[0]):04X}"
        if self.name is not None and _LINE_BREAK.search(cells[self.name].strip()):
            return "the name has a line break in it"
        if any(cell.strip() for cell in cells[self.width :]):
            return f"it has {len(cells)} cells, but the first line names {self.width} columns"
        return None


def _attributes(titles: list[str], used: set[int | None]) -> tuple[tuple[int, str], ...]:
    """The further columns under names that a template can use. A column without a title is left out."""
    taken = {"email", "name", ""}
    attributes: list[tuple[int, str]] = []
    for index, title in enumerate(titles):
        key = stem = re.sub(r"\W+", "_", title).strip("_")
        if index in used or not stem:
            continue
        number = 2
        while key in taken:
            key, number = f"{stem}_{number}", number + 1
        taken.add(key)
        attributes.append((index, key))
    return tuple(attributes)


def _header_line(lines: _Lines, path: str) -> str:
    try:
        header = next(lines, "")
    except _RecordTooLong as exc:
        raise BadInput(f"{path!r} is not a list of subscribers: in its first line {exc}.") from exc
    if not header.strip():
        raise BadInput(f"{path!r} is empty. Its first line must name the columns, such as: email,name")
    if "\x00" in header or _NOT_UTF8.search(header):
        raise BadInput(f"{path!r} is not UTF-8. Save it as «CSV UTF-8» and import it again.")
    return header


def _shown(raw: str) -> str:
    short = raw.rstrip("\r\n")
    short = short if len(short) <= _SHOWN_LENGTH else short[: _SHOWN_LENGTH - 1] + "…"
    readable = short.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in readable
    )
