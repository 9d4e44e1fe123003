"""Subscribers from a CSV file: streamed, bounded in memory, every bad line told with its number."""

from __future__ import annotations

import csv
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple, TextIO

from sendonce.adapters.files.csv_cells import unguarded
from sendonce.adapters.sources.csv_records import MAX_LINE, Block, CsvRecords, TooLong
from sendonce.adapters.sources.state_columns import StateColumns
from sendonce.adapters.sources.text_encoding import open_text
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.people_columns import (
    PeopleColumns,
    ReadChunk,
    attributes_text,
    attributes_texts,
    plain_addresses,
)
from sendonce.domain.people.subscribers import CONSENT, EXPORTED, REJECTED, BadRow, attribute_of
from sendonce.domain.people.told_states import REASONS, StateRules, Told, folded
from sendonce.errors import BadInput

# Titles as exports write them, GetResponse's among them, in letters and digits only: «E-mail адрес» is
# emailадрес. The earlier one wins where a file has several.
EMAIL_TITLES = (
    *("email", "emailaddress", "subscriberemail", "contactemail", "useremail", "mail", "subscriber"),
    *("электроннаяпочта", "адресэлектроннойпочты", "электронныйадрес", "эладрес", "элпочта", "почта"),
    *("emailадрес", "адресemail", "emailподписчика", "имейл", "емейл", "емайл", "мейл"),
)
NAME_TITLES = (
    *("name", "имя", "firstname", "givenname", "subscribername", "contactname", "username"),
    *("имяподписчика", "имяконтакта", "имяполучателя", "fullname", "полноеимя", "имяифамилия", "фио"),
)

CHUNK = 10_000
"""Rows of a chunk, or a few more: a store writes each chunk in one transaction."""

_DELIMITERS = ",;\t"
_BLANK = _DELIMITERS + '" \r\n'  # a blank row of a sheet is written ;;;
_MAX_COLUMNS = 500
_SHOWN_LENGTH = 200
_KEPT_LENGTH = 2_000  # of a rejected cell, so that it can be mended
# Excel's word to itself in a line before the titles.
_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?[\r\n]*', re.IGNORECASE)

_NOT_TEXT = re.compile("[\ud800-\udfff]")  # what surrogateescape makes of undecodable bytes
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # C1 too: U+009B moves a cursor
_LINE_BREAK = re.compile("[\r\n]")

_NO_RULES = StateRules()

Columns = Mapping[str, str]
"""Which column holds what: ``{"email": "E-mail", "name": "Имя", "city": "Город"}``."""


def read_subscribers(
    path: str | Path,
    *,
    columns: Columns = MappingProxyType({}),
    encoding: str | None = None,
    states: StateRules = _NO_RULES,
    progress: Callable[[int], None] | None = None,
    announce: Callable[[Sequence[str]], None] | None = None,
) -> Iterator[ReadChunk]:
    """The rows of a file whose first line names the columns; blank lines and ``sep=;`` may come before it.

    ``announce`` is told the titles, ``progress`` the bytes read so far. When the first chunk is asked for,
    raises BadInput if there is no such file or no e-mail column, and RefusedByRule where it cannot be read
    who may be written to.
    """
    try:
        with _opened(Path(path)) as binary:
            encoding, settled = _settled(binary, Path(path), columns, encoding, states)
            if announce is not None:
                announce(settled.titles[settled.ours.rejected.stop :])
            for chunk in _chunks(binary, str(path), encoding, settled):
                if progress is not None:
                    progress(binary.tell())
                yield chunk
    except OSError as exc:
        raise BadInput(
            f"Cannot read {str(path)!r}: {exc.strerror}. Check the path and its permissions."
        ) from exc


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file that can be read twice: what comes through a pipe is put on the disk first."""
    with path.open("rb") as binary:
        if binary.seekable():
            yield binary
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(binary, copy)
            yield copy


class Heading(NamedTuple):
    titles: list[str]
    delimiter: str


@contextmanager
def _text(binary: BinaryIO, path: str, encoding: str | None) -> Iterator[TextIO]:
    """The file from its beginning; it stays open for another look."""
    binary.seek(0)
    file = open_text(binary, path, encoding)
    try:
        yield file
    finally:
        file.detach()


def _settled(
    binary: BinaryIO, path: Path, wanted: Columns, encoding: str | None, states: StateRules
) -> tuple[str, _Layout]:
    """The file's encoding and layout, after a look at the columns that may say who must not be written to."""
    with _text(binary, str(path), encoding) as file:
        records = CsvRecords(file)
        heading = read_heading(records, str(path))
        layout = _Layout.of(heading.titles, wanted, str(path), file.encoding, states)
        if layout.states.kinds:
            for block in records.blocks(heading.delimiter, layout.width):
                layout.states.look_at(block, layout.email)
            layout.states.settle(str(path))
        layout.states.require_sense(str(path), path.name)
        return file.encoding, layout


def _chunks(binary: BinaryIO, path: str, encoding: str, layout: _Layout) -> Iterator[ReadChunk]:
    with _text(binary, path, encoding) as file:
        records = CsvRecords(file)
        heading = read_heading(records, path)
        chunk = ReadChunk()
        for block in records.blocks(heading.delimiter, layout.width):
            found = layout.take(block)
            found.bad = sorted([*found.bad, *(layout.broken(*each) for each in block.bad)])
            chunk.extend(found)
            if len(chunk.lines) + len(chunk.bad) >= CHUNK:
                yield chunk
                chunk = ReadChunk()
        yield chunk


def read_heading(records: CsvRecords, path: str) -> Heading:
    """The titles, and what stands between them. Raises BadInput for a file without any."""
    header = _header_line(records, path)
    separator = _SEPARATOR.fullmatch(header)
    if separator:
        header = _header_line(records, path)
        delimiter = separator[1]
    else:
        delimiter = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", header).count)
    return Heading(next(csv.reader([header], delimiter=delimiter), []), delimiter)


@dataclass(frozen=True, slots=True)
class _OurColumns:
    """The columns that a file of ours begins with: of rejected lines, and of an export."""

    rejected: range
    exported: range
    consent: int | None

    @classmethod
    def of(cls, header: Sequence[str]) -> _OurColumns:
        rejects = tuple(header[: len(REJECTED)]) == REJECTED and len(header) > len(REJECTED)
        first = len(REJECTED) if rejects else 0
        end = first + len(EXPORTED)
        if tuple(header[first:end]) != EXPORTED:
            return cls(range(first), range(first, first), None)
        consent = end if [*header[end : end + 1]] == [CONSENT] else None
        return cls(range(first), range(first, end + (consent is not None)), consent)

    def __bool__(self) -> bool:
        return bool(self.rejected or self.exported)

    def stateless(self, width: int) -> set[int]:
        """Columns that tell no state. An export has one that does, whatever its attributes are called."""
        if not self.exported:
            return {*self.rejected}
        return {*range(width)} - {self.exported[EXPORTED.index("status")]}


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where to find what in a record."""

    titles: list[str]
    email: int
    name: int | None
    attributes: tuple[tuple[int, str], ...]
    states: StateColumns
    ours: _OurColumns
    encoding: str

    @property
    def width(self) -> int:
        return len(self.titles)

    @classmethod
    def of(cls, header: list[str], wanted: Columns, path: str, encoding: str, rules: StateRules) -> _Layout:
        if len(header) > _MAX_COLUMNS:
            raise BadInput(f"{path!r} has {len(header)} columns, the limit is {_MAX_COLUMNS}.")
        chosen = {target: with_title(header, title, path) for target, title in wanted.items()}
        ours = _OurColumns.of(header)
        taken = {*chosen.values(), *ours.rejected}
        free = [folded(title) if n not in taken else "" for n, title in enumerate(header)]
        email = chosen.pop("email", None)
        if email is None:
            email = _first_of(EMAIL_TITLES, free)
        if email is None:
            raise _no_address_column(header, path)
        name = chosen.pop("name", None)
        if name is None:
            name = _first_of(NAME_TITLES, free)
        titles = ["" if n in (email, name, *ours.rejected) else title for n, title in enumerate(header)]
        if ours.exported:
            end = ours.exported.stop
            titles = [""] * end + [attribute_of(title) for title in titles[end:]]
        for target, index in chosen.items():
            titles[index] = target
        taken = {email, *({name} if name is not None else ()), *ours.stateless(len(header))}
        states = StateColumns.of(header, taken, rules)
        return cls(header, email, name, _attributes(titles), states, ours, encoding)

    def take(self, block: Block) -> ReadChunk:
        if block.columns:
            columns = [*map(_unguarded, block.columns)] if self.ours else block.columns
            return self._take_columns(block.lines, columns)
        chunk = ReadChunk()
        for line, cells in zip(block.lines, block.records, strict=True):
            self._take_row(chunk, line, [*map(unguarded, cells)] if self.ours else cells)
        return chunk

    def broken(self, line: int, raw: str, reason: str) -> BadRow:
        """A line that could not be cut into cells."""
        return BadRow(line, _shown(raw), reason, (_kept(raw.rstrip("\r\n")),))

    def _take_columns(self, lines: Sequence[int], columns: Sequence[Sequence[str]]) -> ReadChunk:
        """The usual case, column by column. What is no plain address, or not confirmed, is read as a row."""
        emails, keys = plain_addresses([raw.strip() for raw in columns[self.email]])
        told = self.states.told(columns)
        if told is not None and Told.UNCONFIRMED in told:
            keys = ["" if each == Told.UNCONFIRMED else key for each, key in zip(told, keys, strict=True)]
        people = PeopleColumns(emails, keys, self._names(columns), self._attributes(columns))
        if told is not None:
            for key, email, each in zip(keys, emails, told, strict=True):
                if key and each in REASONS:
                    people.deny(key, email, REASONS[each])
        if self.ours.consent is not None:
            people.consents = {k: v for k, v in zip(keys, columns[self.ours.consent], strict=True) if k and v}
        if all(keys):
            return ReadChunk(list(lines), people)
        chunk = ReadChunk(list(compress(lines, keys)), people.where(keys))
        for place in [place for place, key in enumerate(keys) if not key]:
            self._take_row(chunk, lines[place], [column[place] for column in columns])
        return chunk

    def _names(self, columns: Sequence[Sequence[str]]) -> list[str | None]:
        if self.name is None:
            return [None] * len(columns[self.email])
        return [name.strip() or None for name in columns[self.name]]

    def _attributes(self, columns: Sequence[Sequence[str]]) -> list[str]:
        if not self.attributes:
            return ["{}"] * len(columns[self.email])
        return attributes_texts(
            (key, [value.strip() for value in columns[index]]) for index, key in self.attributes
        )

    def _take_row(self, chunk: ReadChunk, line: int, cells: list[str]) -> None:
        """Add a record to what it belongs to; one with nothing in it belongs nowhere."""
        together = "".join(cells)
        if not together or together.isspace():
            return
        cells += [""] * (self.width - len(cells))
        told = self.states.told_of(cells)
        reason = self._objection(cells, together)
        if reason is None:
            try:
                address = parse_address(cells[self.email].strip())
            except BadInput as exc:
                reason = str(exc)
        if reason is None and told == Told.UNCONFIRMED:
            reason = self.states.why_unconfirmed(cells)
        if reason is not None:
            own = tuple(map(_kept, cells[self.ours.rejected.stop :]))
            chunk.bad.append(BadRow(line, _shown(", ".join(cells)), reason, own))
            return
        name = cells[self.name].strip() if self.name is not None else ""
        values = {key: value for index, key in self.attributes if (value := cells[index].strip())}
        chunk.lines.append(line)
        chunk.people.append(address.text, address.key, name or None, attributes_text(values))
        if told in REASONS:
            chunk.people.deny(address.key, address.text, REASONS[told])
        if self.ours.consent is not None and cells[self.ours.consent]:
            chunk.people.consents[address.key] = cells[self.ours.consent]

    def _objection(self, cells: list[str], together: str) -> str | None:
        one_line = {"name": self.name} if self.name is not None else {}
        return objection_to(cells, together, self.width, one_line, self.encoding)


def objection_to(
    cells: Sequence[str], together: str, width: int, one_line: Mapping[str, int], encoding: str
) -> str | None:
    """What is wrong with a line, whatever its columns mean; ``one_line`` are cells without line breaks."""
    if len(together) >= MAX_LINE:
        return f"the line has {MAX_LINE} characters or more"
    if "\x00" in together:
        return "it contains a NUL byte"
    if _NOT_TEXT.search(together):
        shown = "UTF-8" if encoding.startswith("utf-8") else encoding
        return f"it is not {shown}. Save the file as «CSV UTF-8», or give --encoding"
    control = _CONTROL.search(together)
    if control:
        return f"it contains the control character U+{ord(control[0]):04X}"
    for what, column in one_line.items():
        if _LINE_BREAK.search("".join(cells[column : column + 1]).strip()):
            return f"the {what} has a line break in it"
    if any(cell.strip() for cell in cells[width:]):
        return f"it has {len(cells)} cells, but the first line names {width} columns"
    return None


def with_title(header: Sequence[str], title: str, path: str) -> int:
    """The column that a person named, as it is written or nearly so."""
    exact = [n for n, written in enumerate(header) if written.strip() == title.strip()]
    near = [n for n, written in enumerate(header) if folded(title) and folded(written) == folded(title)]
    for found in (exact, near):
        if found:
            return found[0]
    names = _shown(", ".join(written.strip() for written in header if written.strip()) or "nothing")
    raise BadInput(f"{path!r} has no column {title!r}: its first line names {names}. Correct --map.")


def _no_address_column(header: list[str], path: str) -> BadInput:
    found = _shown(", ".join(title.strip() for title in header if title.strip()) or "nothing")
    return BadInput(
        f"{path!r} has no e-mail column: its first line names {found}. "
        "Name the column with the addresses 'email', or tell which it is: --map email=…"
    )


def _unguarded(column: Sequence[str]) -> Sequence[str]:
    return [*map(unguarded, column)] if "'" in "".join(column) else column


def _first_of(known: tuple[str, ...], titles: list[str]) -> int | None:
    return next((titles.index(title) for title in known if title in titles), None)


def _attributes(titles: list[str]) -> tuple[tuple[int, str], ...]:
    """The further columns under names that a template can use. A column without a title is left out."""
    taken = {"email", "name", ""}
    attributes: list[tuple[int, str]] = []
    for index, title in enumerate(titles):
        key = stem = re.sub(r"\W+", "_", title.casefold()).strip("_")
        if not stem:
            continue
        number = 2
        while key in taken:
            key, number = f"{stem}_{number}", number + 1
        taken.add(key)
        attributes.append((index, key))
    return tuple(attributes)


def _header_line(records: CsvRecords, path: str) -> str:
    """The next line with something in it."""
    try:
        header = records.header()
        while header and not header.strip(_BLANK):
            header = records.header()
    except TooLong as exc:
        raise BadInput(f"{path!r} is not a list of subscribers: in its first line {exc}.") from exc
    if not header:
        raise BadInput(f"{path!r} is empty. Its first line must name the columns, such as: email,name")
    if "\x00" in header or _NOT_TEXT.search(header):
        raise BadInput(f"The first line of {path!r} is not text: save the file as «CSV UTF-8».")
    return header


def _shown(raw: str) -> str:
    short = raw.rstrip("\r\n")
    short = short if len(short) <= _SHOWN_LENGTH else short[: _SHOWN_LENGTH - 1] + "…"
    return "".join(_escaped(char) for char in _readable(short))


def _kept(cell: str) -> str:
    """A cell of a rejected record, to be mended: long ones are cut, and what cannot be shown is escaped."""
    short = cell if len(cell) <= _KEPT_LENGTH else cell[: _KEPT_LENGTH - 1] + "…"
    return "".join(char if char in "\t\r\n" else _escaped(char) for char in _readable(short))


def _readable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
