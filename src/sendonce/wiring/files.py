"""Files of people in and out: lists of subscribers and of opt-outs, and tables for a spreadsheet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sendonce.settings import Settings
from sendonce.wiring.stores import sqlite_file

if TYPE_CHECKING:
    from sendonce.adapters.files.csv_tables import CsvTable
    from sendonce.adapters.sources.suppressions_csv import FoundOptOut
    from sendonce.domain.people.people_columns import ReadChunk
    from sendonce.domain.people.told_states import StateRules
    from sendonce.ports.people import SeenKeys


def csv_table(path: Path | None, titles: Sequence[str], *, even_if_empty: bool = False) -> CsvTable:
    """A file that is safe to open in a spreadsheet; without a path it goes to stdout."""
    from sendonce.adapters.files.csv_tables import CsvTable

    return CsvTable(path, titles, even_if_empty=even_if_empty)


def check_outputs(settings: Settings, *outputs: Path | None, source: Path | None = None) -> None:
    """Refuse to write over the database, over what is being read, or two files into one."""
    from sendonce.adapters.files.csv_tables import refuse_to_overwrite

    kept = [(source, "the file to read")] if source else []
    database = sqlite_file(settings)
    if database is not None:
        names = [database.name + ending for ending in ("", "-wal", "-shm", "-journal")]
        kept += [(database.with_name(name), "the database") for name in names]
    refuse_to_overwrite(filter(None, outputs), kept)


def subscribers_in(
    file: Path,
    *,
    columns: Mapping[str, str],
    encoding: str,
    states: StateRules,
    progress: Callable[[int], None],
    announce: Callable[[Sequence[str]], None],
) -> Iterator[ReadChunk]:
    """The people in a CSV file; an empty ``encoding`` is found out."""
    from sendonce.adapters.sources.subscribers_csv import read_subscribers

    return read_subscribers(
        file,
        columns=columns,
        encoding=encoding or None,
        states=states,
        progress=progress,
        announce=announce,
    )


def seen_keys() -> SeenKeys:
    """What an import has come across, in memory that does not grow with the list."""
    from sendonce.adapters.sources.fingerprints import Fingerprints

    return Fingerprints()


def opt_outs_in(file: Path, columns: Mapping[str, str], encoding: str) -> Iterator[FoundOptOut]:
    """The addresses of a file that must not be written to; an empty ``encoding`` is found out."""
    from sendonce.adapters.sources.suppressions_csv import read_suppressions

    return read_suppressions(file, columns=columns, encoding=encoding or None)
