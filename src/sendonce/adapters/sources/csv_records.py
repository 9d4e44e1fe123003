"""The records of a CSV file, each with the number of its first line, in bounded memory.

One bad line never costs its neighbours. A quote that is not closed would swallow the rest of the file;
here a record may span a few lines only, and what an unclosed quote took is read again line by line.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable, Iterator
from typing import TextIO

MAX_LINE = 256 * 1024
MAX_LINES_OF_RECORD = 50
_BLOCK = 256 * 1024


class BadRecord(Exception):
    """``raw`` is the line where the trouble began."""

    def __init__(self, reason: str, raw: str) -> None:
        super().__init__(reason)
        self.raw = raw


class CsvRecords:
    """Blocks of well-formed lines go through the csv module at its full speed; a block with a fault in
    it is read again with care."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lines = _Lines(file.readline)
        self.line = 1

    def header(self) -> str:
        """The first line. Raises BadRecord if it has no end in sight."""
        try:
            return next(self._lines, "")
        except _RecordTooLong as exc:
            raise BadRecord(str(exc), self._lines.record[0]) from exc
        finally:
            self.line += 1

    def read(self, delimiter: str) -> Iterator[tuple[int, list[str] | BadRecord]]:
        while block := self._file.read(_BLOCK):
            if block[-1] != "\n":
                block += self._file.readline(MAX_LINE)
            records = self._fast(block, delimiter)
            if records is not None:
                yield from records
            else:
                yield from self._careful(block, delimiter)

    def _fast(self, block: str, delimiter: str) -> list[tuple[int, list[str] | BadRecord]] | None:
        """All the records of a block, or None if there is anything odd about it."""
        if block[-1] not in "\r\n" and len(block) >= MAX_LINE:
            return None
        reader = csv.reader(io.StringIO(block, newline=""), delimiter=delimiter, strict=True)
        found: list[tuple[int, list[str] | BadRecord]] = []
        first, before = self.line, 0
        try:
            for record in reader:
                found.append((first + before, record))
                if reader.line_num - before > MAX_LINES_OF_RECORD:
                    return None
                before = reader.line_num
        except csv.Error:
            return None
        self.line += before
        return found

    def _careful(self, block: str, delimiter: str) -> Iterator[tuple[int, list[str] | BadRecord]]:
        """The records that begin in a block; the last may go on in the file."""
        inside = io.StringIO(block, newline="")
        lines = _Lines(lambda limit: inside.readline(limit) or self._file.readline(limit))
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        while inside.tell() < len(block) or lines.waiting:
            lines.record.clear()
            line = self.line
            try:
                record = next(reader)
            except StopIteration:
                return
            except (csv.Error, _RecordTooLong) as exc:
                yield line, BadRecord(_in_our_words(exc), lines.record[0])
                lines.give_back_all_but_first()
                self.line += 1
            else:
                yield line, record
                self.line += len(lines.record)


class _RecordTooLong(Exception):
    pass


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
            raise _RecordTooLong("a quote is not closed")
        if len(line) >= MAX_LINE:
            self._skip_rest_of(line)
            raise _RecordTooLong(f"the line has {MAX_LINE} characters or more")
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
