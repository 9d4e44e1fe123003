"""Opt-outs from a file: one address a line, or a CSV whose address column is found by its title.

No address is passed over: a record that is broken is read for its address all the same.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from sendonce.adapters.files.csv_cells import unguarded
from sendonce.adapters.sources.csv_records import CsvRecords
from sendonce.adapters.sources.subscribers_csv import EMAIL_TITLES, read_heading, with_title
from sendonce.adapters.sources.text_encoding import open_text
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people import subscribers
from sendonce.domain.people.suppressions import EVERYBODY, EXPORTED, SuppressionReason
from sendonce.domain.people.told_states import REASONS, Told, folded, gravest, kind_of, read_value, read_word
from sendonce.errors import BadInput

_ADDRESS_TITLES = (*EMAIL_TITLES, "address", "recipient", "адрес")
_REASON_TITLES = ("reason", "suppressionreason", "причина")
_LONGEST_NOTE = 200


class FoundOptOut(NamedTuple):
    """An address as it is written, why it is not to be written to, and for whom: None for this tenant."""

    line: int
    text: str
    reason: SuppressionReason
    note: str | None
    scope: TenantId | None = None


def read_suppressions(
    path: Path, *, columns: Mapping[str, str] = MappingProxyType({}), encoding: str | None = None
) -> Iterator[FoundOptOut]:
    """Every line that has something where the address is. Raises BadInput where no column holds addresses."""
    try:
        with path.open("rb") as raw, open_text(raw, str(path), encoding) as file:
            records = CsvRecords(file)
            heading = read_heading(records, str(path))
            layout = _Layout.of(heading.titles, columns, path)
            if not layout.titled:
                yield from layout.found(records.line - 1, heading.titles)
            for block in records.blocks(heading.delimiter, len(heading.titles)):
                rows = zip(*block.columns, strict=True) if block.columns else block.records
                whole = [*zip(block.lines, map(list, rows), strict=True)]
                broken = [(line, _cells(text, heading.delimiter)) for line, text, _ in block.bad]
                for line, cells in sorted(whole + broken):
                    yield from layout.found(line, cells)
    except OSError as exc:
        raise BadInput(f"{path} cannot be read: {exc.strerror}.") from exc


def _cells(text: str, delimiter: str) -> list[str]:
    """A line that breaks the rules of CSV, as well as it can be cut."""
    lax = csv.reader([text.replace("\x00", "")], delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return [cell.strip().strip('"') for cell in next(lax, [])]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where to find what in a record."""

    address: int
    titled: bool
    titles: Sequence[str]
    file_name: str
    ours: bool

    @classmethod
    def of(cls, titles: Sequence[str], wanted: Mapping[str, str], path: Path) -> _Layout:
        ours = _is_ours(titles)
        if "email" in wanted:
            return cls(with_title(titles, wanted["email"], str(path)), True, titles, path.name, ours)
        known = [folded(title) for title in titles]
        place = next((known.index(title) for title in _ADDRESS_TITLES if title in known), None)
        if place is not None:
            return cls(place, True, titles, path.name, ours)
        place = next((n for n, cell in enumerate(titles) if "@" in cell), None)
        if place is None and len(titles) > 1:
            names = ", ".join(title.strip() for title in titles if title.strip())
            raise BadInput(
                f"{str(path)!r} has no column with addresses: its first line names {names[:200]!r}. "
                "Say which it is: --map email=…"
            )
        return cls(place or 0, False, (), path.name, False)

    def found(self, line: int, cells: Sequence[str]) -> Iterator[FoundOptOut]:
        if self.ours:
            cells = [*map(unguarded, cells)]
        text = cells[self.address].strip() if self.address < len(cells) else "".join(cells).strip()
        if not text:
            return
        own = dict(zip(EXPORTED, cells, strict=False)) if tuple(self.titles) == EXPORTED else {}
        scope = EVERYBODY if own.get("scope") == EVERYBODY else None
        note = own.get("note") or self._note(cells)
        yield FoundOptOut(line, text, self._reason(cells), note, scope)

    def _reason(self, cells: Sequence[str]) -> SuppressionReason:
        """What the columns say, the gravest of it; a plain no where they say nothing that can be read."""
        told = []
        for title, cell in zip(self.titles, cells, strict=False):
            kind = kind_of(title)
            read = read_word(cell) if folded(title) in _REASON_TITLES else kind and read_value(kind, cell)
            told.append(read or Told.ACTIVE)
        return REASONS.get(gravest(told), SuppressionReason.MANUAL)

    def _note(self, cells: Sequence[str]) -> str:
        given = zip(self.titles, cells, strict=False)
        why = [cell.strip() for title, cell in given if folded(title) in _REASON_TITLES and cell.strip()]
        return f"{self.file_name}: {why[0][:_LONGEST_NOTE]}" if why else self.file_name


def _is_ours(titles: Sequence[str]) -> bool:
    known = (EXPORTED, subscribers.EXPORTED, subscribers.REJECTED)
    return any(tuple(titles[: len(own)]) == own for own in known)
