"""The records of a CSV file in blocks, each record with the number of its first line, in bounded memory.

One bad line never costs its neighbours. A quote that is not closed would swallow the rest of the file;
here a record may span a few lines only, and what an unclosed quote took is read again line by line.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

MAX_LINE = 256 * 1024
MAX_LINES_OF_RECORD = 50
_BLOCK = 128 * 1024


@dataclass(slots=True)
class Block:
    """``columns`` where each record is one line, as wide as the first, with nothing unprintable in it;
    ``records`` otherwise. ``bad``: line, text, reason."""

    lines: Sequence[int]
    columns: Sequence[Sequence[str]] = ()
    records: list[list[str]] = field(default_factory=list)
    bad: list[tuple[int, str, str]] = field(default_factory=list)


class TooLong(Exception):
    """A record or a line without an end in sight."""


class CsvRecords:
    """Blocks of well-formed lines are taken as a whole; a block with a fault in it is read with care."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._line = 1

    @property
    def line(self) -> int:
        """The number of the next line."""
        return self._line

    def header(self) -> str:
        """The next line, before any blocks; empty at the end of the file. Raises TooLong."""
        self._line += 1
        return next(_Lines(self._file.readline), "")

    def blocks(self, delimiter: str, width: int) -> Iterator[Block]:
        while text := self._file.read(_BLOCK):
            if text[-1] != "\n":
                text += self._file.readline(MAX_LINE)
            columns = _without_quotes(text, delimiter, width) or _columns(text, delimiter, width)
            if columns and _is_printable(text, delimiter):
                first, self._line = self._line, self._line + len(columns[0])
                yield Block(range(first, self._line), columns)
            else:
                yield self._careful(text, delimiter)

    def _careful(self, text: str, delimiter: str) -> Block:
        """The records that begin in a block; the last may go on in the file."""
        inside = io.StringIO(text, newline="")
        lines = _Lines(lambda limit: inside.readline(limit) or self._file.readline(limit))
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        numbers: list[int] = []
        block = Block(numbers)
        while inside.tell() < len(text) or lines.waiting:
            lines.record.clear()
            try:
                record = next(reader)
            except StopIteration:
                break
            except (csv.Error, TooLong) as exc:
                block.bad.append((self._line, lines.record[0], _in_our_words(exc)))
                lines.give_back_all_but_first()
                self._line += 1
            else:
                numbers.append(self._line)
                block.records.append(record)
                self._line += len(lines.record)
        return block


def _without_quotes(text: str, delimiter: str, width: int) -> list[list[str]] | None:
    """What ``_columns`` gives, without a list for each line; None where only the csv module can tell."""
    lines = text.replace("\r\n", "\n").removesuffix("\n") + "\n"
    last_line = len(lines) - lines.rfind("\n", 0, -1)
    # The csv module refuses cells of over 128 KB, and only the last line of a block can be so long.
    if '"' in lines or "\r" in lines or last_line >= _BLOCK:
        return None
    count = lines.count("\n")
    # With the line ends as cells of their own, all of them in their places means that all lines are even.
    cells = lines.replace("\n", f"{delimiter}\n{delimiter}").split(delimiter)
    if len(cells) != count * (width + 1) + 1 or cells[width :: width + 1].count("\n") != count:
        return None
    return [cells[n : -1 : width + 1] for n in range(width)]


def _columns(text: str, delimiter: str, width: int) -> list[tuple[str, ...]] | None:
    """The columns of a block whose records are all one line and as wide; None if there is an odd one."""
    if text[-1] not in "\r\n" and len(text) >= MAX_LINE:
        return None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        records = list(reader)
    except csv.Error:
        return None
    if reader.line_num != len(records) or any(len(record) != width for record in records):
        return None
    return list(zip(*records, strict=True))


def _is_printable(text: str, delimiter: str) -> bool:
    line = text.replace("\n", "").replace("\r", "")
    return (line.replace("\t", "") if delimiter == "\t" else line).isprintable()


class _Lines:
    """Lines, bounded in length. ``record`` collects those of the record that is being read."""

    def __init__(self, readline: Callable[[int], str]) -> None:
        self.record: list[str] = []
        self.waiting: deque[str] = deque()
        self._readline = readline

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self.waiting.popleft() if self.waiting else self._readline(MAX_LINE)
        if not line:
            raise StopIteration
        record = self.record
        record.append(line)
        if len(record) > MAX_LINES_OF_RECORD:
            raise TooLong("a quote is not closed")
        if len(line) >= MAX_LINE:
            self._skip_rest_of(line)
            raise TooLong(f"the line has {MAX_LINE} characters or more")
        return line

    def give_back_all_but_first(self) -> None:
        """After an error, so that only the line where the trouble began is lost."""
        self.waiting.extendleft(reversed(self.record[1:]))

    def _skip_rest_of(self, line: str) -> None:
        rest = line
        while rest and rest[-1] not in "\r\n":
            rest = self._readline(MAX_LINE)
        self.record[-1] = line + "\n"  # whole now, should it be given back


def _in_our_words(exc: Exception) -> str:
    complaint = str(exc)
    if complaint == "unexpected end of data":
        return "a quote is not closed"
    if "expected after" in complaint:
        return "a closing quote is followed by more text; a quote inside quotes is written twice"
    return complaint
