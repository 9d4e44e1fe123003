"""Leads from a CSV file: the address, the name, the company and the time zone are found by their titles.

Every other column is a variable of letters, under its title. A line that cannot be a lead is told with its
number, and costs nobody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sendonce.adapters.files.csv_cells import unguarded
from sendonce.adapters.sources.csv_records import CsvRecords
from sendonce.adapters.sources.subscribers_csv import (
    EMAIL_TITLES,
    NAME_TITLES,
    objection_to,
    read_heading,
    with_title,
)
from sendonce.adapters.sources.text_encoding import open_text
from sendonce.domain.campaigns.leads import MAX_FIELD, NewLead
from sendonce.domain.campaigns.receivers import Receiver, receiver_of_domain
from sendonce.domain.campaigns.windows import parse_zone
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.subscribers import BadRow
from sendonce.domain.people.told_states import folded
from sendonce.errors import BadInput

_COMPANY_TITLES = (
    "company",
    "organization",
    "organisation",
    "companyname",
    "компания",
    "организация",
    "фирма",
)
_ZONE_TITLES = ("timezone", "tz", "часовойпояс")
_WORD = re.compile(r"\W+")


class _Layout(NamedTuple):
    email: int
    name: int | None
    company: int | None
    zone: int | None
    fields: dict[int, str]
    width: int
    encoding: str

    @property
    def one_line(self) -> dict[str, int]:
        """Names stand in headers, where a line ends the header."""
        named = {"name": self.name, "company": self.company}
        return {what: column for what, column in named.items() if column is not None}


def read_leads(
    path: Path, columns: Mapping[str, str], encoding: str | None = None
) -> Iterator[NewLead | BadRow]:
    """Raises BadInput where the file cannot be read or no column holds addresses."""
    try:
        with path.open("rb") as raw, open_text(raw, str(path), encoding) as file:
            records = CsvRecords(file)
            heading = read_heading(records, str(path))
            layout = _layout(heading.titles, columns, str(path), file.encoding)
            for block in records.blocks(heading.delimiter, len(heading.titles)):
                rows = zip(*block.columns, strict=True) if block.columns else block.records
                for line, cells in zip(block.lines, rows, strict=True):
                    if any(cell.strip() for cell in cells):
                        yield _lead(line, [unguarded(cell).strip() for cell in cells], layout)
                yield from (BadRow(line, text, reason) for line, text, reason in block.bad)
    except OSError as exc:
        raise BadInput(f"{path} cannot be read: {exc.strerror}.") from exc


def _layout(titles: Sequence[str], columns: Mapping[str, str], path: str, encoding: str) -> _Layout:
    chosen = {target: with_title(titles, title, path) for target, title in columns.items()}
    email = chosen.pop("email", _titled(titles, EMAIL_TITLES))
    if email is None:
        raise BadInput(
            f"{path}: no column is titled as one of addresses. Name it: --map email=TITLE. The titles are: "
            f"{', '.join(titles)[:300]}."
        )
    name = chosen.pop("name", _titled(titles, NAME_TITLES))
    company = chosen.pop("company", _titled(titles, _COMPANY_TITLES))
    zone = chosen.pop("timezone", _titled(titles, _ZONE_TITLES))
    taken = {email, zone}
    fields = {n: _variable(title) for n, title in enumerate(titles) if n not in taken and _variable(title)}
    fields |= {n: each for each, n in chosen.items()}
    return _Layout(email, name, company, zone, fields, len(titles), encoding)


def _titled(titles: Sequence[str], known: Sequence[str]) -> int | None:
    found = [folded(title) for title in titles]
    return next((found.index(title) for title in known if title in found), None)


def _variable(title: str) -> str:
    return _WORD.sub("_", title.strip().lower()).strip("_")


def _lead(line: int, cells: Sequence[str], layout: _Layout) -> NewLead | BadRow:
    def cell(column: int | None) -> str | None:
        return cells[column] or None if column is not None and column < len(cells) else None

    written = cell(layout.email) or ""
    wrong = objection_to(cells, "".join(cells), layout.width, layout.one_line, layout.encoding)
    if wrong is not None:
        return BadRow(line, written[:100], wrong)
    try:
        address = parse_address(written)
        zone = cell(layout.zone)
        if zone is not None:
            parse_zone(zone)
        fields = {name: value for column, name in layout.fields.items() if (value := cell(column))}
        _check(fields)
    except BadInput as exc:
        return BadRow(line, written[:100], str(exc))
    name, company = cell(layout.name), cell(layout.company)
    own = {key: value for key, value in (("name", name), ("company", company)) if value}
    receiver = receiver_of_domain(address.key.rpartition("@")[2]) or Receiver.OTHER
    return NewLead(address, name, company, zone, receiver, {**fields, **own})


def _check(fields: Mapping[str, str]) -> None:
    for name, value in fields.items():
        if len(value) > MAX_FIELD:
            raise BadInput(f"{name} has {len(value)} characters: at most {MAX_FIELD} are kept.")
