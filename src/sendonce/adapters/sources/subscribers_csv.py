"""Subscribers from a CSV file: streamed, bounded in memory, every bad line told with its number."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

from sendonce.adapters.csv_cells import unguarded
from sendonce.adapters.sources.csv_records import MAX_LINE, Block, CsvRecords, TooLong
from sendonce.adapters.sources.text_encoding import open_text
from sendonce.domain.addresses import parse_address
from sendonce.domain.people_columns import (
    PeopleColumns,
    ReadChunk,
    attributes_text,
    attributes_texts,
    plain_addresses,
)
from sendonce.domain.subscribers import EXPORTED, OPTED_OUT, BadRow, attribute_of
from sendonce.errors import BadInput

# Titles as exports write them, GetResponse's among them, in letters and digits only: «E-mail адрес» is
# emailадрес. The earlier one wins where a file has several.
EMAIL_TITLES = (
    *("email", "emailaddress", "subscriberemail", "contactemail", "useremail", "mail"),
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
# Excel's word to itself in a line before the titles.
_SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?[\r\n]*', re.IGNORECASE)

_NOT_TEXT = re.compile("[\ud800-\udfff]")  # what surrogateescape makes of undecodable bytes
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_BREAK = re.compile("[\r\n]")

Columns = Mapping[str, str]
"""Which column holds what: ``{"email": "E-mail", "name": "Имя", "city": "Город"}``."""


def read_subscribers(
    path: str | Path,
    *,
    columns: Columns = MappingProxyType({}),
    encoding: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ReadChunk]:
    """The rows of a file whose first line names the columns. ``progress`` is told the bytes read so far.

    Blank lines and Excel's ``sep=;`` may come before it.

    Raises BadInput, when the first chunk is asked for, if there is no such file or no e-mail column.
    """
    try:
        with Path(path).open("rb") as binary:
            file = open_text(binary, str(path), encoding)
            for chunk in _chunks(file, str(path), columns):
                if progress is not None and binary.seekable():
                    progress(binary.tell())
                yield chunk
    except OSError as exc:
        raise BadInput(
            f"Cannot read {str(path)!r}: {exc.strerror}. Check the path and its permissions."
        ) from exc


def _chunks(file: TextIO, path: str, wanted: Columns) -> Iterator[ReadChunk]:
    records = CsvRecords(file)
    header = _header_line(records, path)
    separator = _SEPARATOR.fullmatch(header)
    if separator:
        header = _header_line(records, path)
        delimiter = separator[1]
    else:
        delimiter = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", header).count)
    titles = next(csv.reader([header], delimiter=delimiter), [])
    layout = _Layout.of(titles, wanted, path, file.encoding)
    chunk = ReadChunk()
    for block in records.blocks(delimiter, layout.width):
        found = layout.take(block)
        found.bad = sorted([*found.bad, *(BadRow(n, _shown(raw), reason) for n, raw, reason in block.bad)])
        chunk.extend(found)
        if len(chunk.lines) + len(chunk.bad) >= CHUNK:
            yield chunk
            chunk = ReadChunk()
    yield chunk


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where to find what in a record."""

    width: int
    email: int
    name: int | None
    attributes: tuple[tuple[int, str], ...]
    statuses: tuple[int, ...]
    ours: bool
    encoding: str

    @classmethod
    def of(cls, header: list[str], wanted: Columns, path: str, encoding: str) -> _Layout:
        if len(header) > _MAX_COLUMNS:
            raise BadInput(f"{path!r} has {len(header)} columns, the limit is {_MAX_COLUMNS}.")
        chosen = {target: _column(header, title, path) for target, title in wanted.items()}
        free = [_folded(title) if n not in chosen.values() else "" for n, title in enumerate(header)]
        email = chosen.pop("email", None)
        if email is None:
            email = _first_of(EMAIL_TITLES, free)
        if email is None:
            found = _shown(", ".join(title.strip() for title in header if title.strip()) or "nothing")
            raise BadInput(
                f"{path!r} has no e-mail column: its first line names {found}. "
                "Name the column with the addresses 'email', or tell which it is: --map email=…"
            )
        name = chosen.pop("name", None)
        if name is None:
            name = _first_of(NAME_TITLES, free)
        titles = ["" if n in (email, name) else title for n, title in enumerate(header)]
        ours = tuple(header[: len(EXPORTED)]) == EXPORTED
        if ours:
            # What an export of ours says of a person's status and times holds where it was made.
            titles = [""] * len(EXPORTED) + [attribute_of(title) for title in titles[len(EXPORTED) :]]
        for target, index in chosen.items():
            titles[index] = target
        statuses = tuple(n for n, title in enumerate(header) if title.strip() == "status")
        return cls(len(header), email, name, _attributes(titles), statuses, ours, encoding)

    def take(self, block: Block) -> ReadChunk:
        if block.columns:
            columns = [*map(_unguarded, block.columns)] if self.ours else block.columns
            return self._take_columns(block.lines, columns)
        chunk = ReadChunk()
        for line, cells in zip(block.lines, block.records, strict=True):
            self._take_row(chunk, line, [*map(unguarded, cells)] if self.ours else cells)
        return chunk

    def _take_columns(self, lines: Sequence[int], columns: Sequence[Sequence[str]]) -> ReadChunk:
        """The usual case, column by column. What is no plain address, or opted out, is looked at as a row."""
        emails, keys = plain_addresses([raw.strip() for raw in columns[self.email]])
        for index in self.statuses:
            denials = set(filter(_denies, set(columns[index])))
            if denials:
                keys = ["" if raw in denials else key for raw, key in zip(columns[index], keys, strict=True)]
        people = PeopleColumns(emails, keys, self._names(columns), self._attributes(columns))
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
        reason = self._objection(cells, together)
        if reason is None:
            try:
                address = parse_address(cells[self.email].strip())
            except BadInput as exc:
                reason = str(exc)
        if reason is not None:
            chunk.bad.append(BadRow(line, _shown(", ".join(cells)), reason))
            return
        name = cells[self.name].strip() if self.name is not None else ""
        values = {key: value for index, key in self.attributes if (value := cells[index].strip())}
        chunk.lines.append(line)
        chunk.people.append(address.text, address.key, name or None, attributes_text(values))

    def _objection(self, cells: list[str], together: str) -> str | None:
        if len(together) >= MAX_LINE:
            return f"the line has {MAX_LINE} characters or more"
        if "\x00" in together:
            return "it contains a NUL byte"
        if _NOT_TEXT.search(together):
            shown = "UTF-8" if self.encoding.startswith("utf-8") else self.encoding
            return f"it is not {shown}. Save the file as «CSV UTF-8», or give --encoding"
        control = _CONTROL.search(together)
        if control:
            return f"it contains the control character U+{ord(control[0]):04X}"
        if self.name is not None and _LINE_BREAK.search(cells[self.name].strip()):
            return "the name has a line break in it"
        if any(cell.strip() for cell in cells[self.width :]):
            return f"it has {len(cells)} cells, but the first line names {self.width} columns"
        for index in self.statuses:
            if _denies(cells[index]):
                return (
                    f"its status is {cells[index].strip().lower()}: opted-out people are carried over by "
                    "'sendonce suppression export' and 'sendonce suppression import'"
                )
        return None


def _column(header: list[str], title: str, path: str) -> int:
    """The column that a person named, as it is written or nearly so."""
    exact = [n for n, written in enumerate(header) if written.strip() == title.strip()]
    near = [n for n, written in enumerate(header) if _folded(title) and _folded(written) == _folded(title)]
    for found in (exact, near):
        if found:
            return found[0]
    names = _shown(", ".join(written.strip() for written in header if written.strip()) or "nothing")
    raise BadInput(f"{path!r} has no column {title!r}: its first line names {names}. Correct --map.")


def _unguarded(column: Sequence[str]) -> Sequence[str]:
    return [*map(unguarded, column)] if "'" in "".join(column) else column


def _denies(status: str) -> bool:
    """Whether it is a status of ours that somebody has who is not written to."""
    return status.strip().lower() in OPTED_OUT


def _first_of(known: tuple[str, ...], titles: list[str]) -> int | None:
    return next((titles.index(title) for title in known if title in titles), None)


def _folded(title: str) -> str:
    """Letters and digits only, so that «E-Mail», «e_mail» and « e mail » are one."""
    return re.sub(r"[\W_]+", "", title.casefold().replace("ё", "е"))


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
    readable = short.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in readable
    )
