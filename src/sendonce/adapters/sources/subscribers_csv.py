"""Subscribers from a CSV file: streamed, bounded in memory, every bad line told with its number."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

from sendonce.adapters.sources.csv_records import MAX_LINE, BadRecord, CsvRecords
from sendonce.adapters.sources.text_encoding import open_text
from sendonce.domain.addresses import parse_address
from sendonce.domain.subscribers import BadRow, SubscriberRow
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

_DELIMITERS = ",;\t"
_MAX_COLUMNS = 500
_SHOWN_LENGTH = 200

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
) -> Iterator[SubscriberRow | BadRow]:
    """The rows of a file whose first line names the columns. ``progress`` is told the bytes read so far.

    Raises BadInput, when the first row is asked for, if there is no such file or no e-mail column.
    """
    try:
        with Path(path).open("rb") as binary:
            file = open_text(binary, str(path), encoding)
            for number, row in enumerate(_rows(file, str(path), columns)):
                yield row
                if progress is not None and number % 1000 == 0 and binary.seekable():
                    progress(binary.tell())
    except OSError as exc:
        raise BadInput(
            f"Cannot read {str(path)!r}: {exc.strerror}. Check the path and its permissions."
        ) from exc


def _rows(file: TextIO, path: str, wanted: Columns) -> Iterator[SubscriberRow | BadRow]:
    records = CsvRecords(file)
    header = _header_line(records, path)
    delimiter = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", header).count)
    titles = next(csv.reader([header], delimiter=delimiter), [])
    layout = _Layout.of(titles, wanted, path)
    read = layout.reader(file.encoding)
    for line, record in records.read(delimiter):
        if isinstance(record, BadRecord):
            yield BadRow(line, _shown(record.raw), str(record))
        else:
            row = read(line, record)
            if row is not None:
                yield row


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where to find what in a record."""

    width: int
    email: int
    name: int | None
    attributes: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, header: list[str], wanted: Columns, path: str) -> _Layout:
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
        for target, index in chosen.items():
            titles[index] = target
        return cls(len(header), email, name, _attributes(titles))

    def reader(self, encoding: str) -> Callable[[int, list[str]], SubscriberRow | BadRow | None]:
        """A function that makes a row of a record, or says why not; None for one with nothing in it."""
        width, email, name, attributes = self.width, self.email, self.name, self.attributes

        def read(line: int, cells: list[str]) -> SubscriberRow | BadRow | None:
            together = "".join(cells)
            if not together or together.isspace():
                return None
            if len(cells) < width:
                cells += [""] * (width - len(cells))
            # isprintable() is false for all that is unfit for a letter, and for a few things that are fit.
            fit = together.isprintable() and len(cells) == width and len(together) < MAX_LINE
            reason = None if fit else self._objection(cells, together, encoding)
            if reason is None:
                try:
                    address = parse_address(cells[email].strip())
                except BadInput as exc:
                    reason = str(exc)
                else:
                    called = cells[name].strip() if name is not None else ""
                    values = {key: value for index, key in attributes if (value := cells[index].strip())}
                    return SubscriberRow(line, address, called or None, values)
            return BadRow(line, _shown(", ".join(cells)), reason)

        return read

    def _objection(self, cells: list[str], together: str, encoding: str) -> str | None:
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
        if self.name is not None and _LINE_BREAK.search(cells[self.name].strip()):
            return "the name has a line break in it"
        if any(cell.strip() for cell in cells[self.width :]):
            return f"it has {len(cells)} cells, but the first line names {self.width} columns"
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
    try:
        header = records.header()
    except BadRecord as exc:
        raise BadInput(f"{path!r} is not a list of subscribers: in its first line {exc}.") from exc
    if not header.strip():
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
