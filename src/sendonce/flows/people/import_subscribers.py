"""Import subscribers: stream the rows, write them in chunks, report every bad line."""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.people_columns import PeopleColumns, ReadChunk
from sendonce.domain.people.subscribers import BadRow, ImportCounts
from sendonce.ports.people import SeenKeys, Subscribers

MOST_SHOWN = 20
MOST_LATE = 10_000


@dataclass
class ImportReport:
    """``duplicates`` are lines that name an address a second time: the first line counts.

    ``bad_rows`` holds the first bad lines; ``invalid`` counts them all.
    """

    counts: ImportCounts = field(default_factory=ImportCounts)
    duplicates: int = 0
    invalid: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        bad = [{"line": row.line, "reason": row.reason} for row in self.bad_rows]
        found = {"duplicate": self.duplicates, "invalid": self.invalid, "invalid_lines": bad}
        return {**asdict(self.counts), **found}

    def note_bad(self, row: BadRow) -> None:
        self.invalid += 1
        if len(self.bad_rows) < MOST_SHOWN:
            self.bad_rows.append(row)


def import_subscribers(
    subscribers: Subscribers,
    tenant_id: TenantId,
    chunks: Iterable[ReadChunk],
    seen: SeenKeys,
    *,
    reject: Callable[[BadRow], None],
    source: str | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """Chunks are transactions: an import that is cut off can simply be run again.

    While the store writes, the next chunk is read. ``reject`` is told every bad line. ``source`` is noted
    with every suppression.
    """
    report = ImportReport()
    lanes = subscribers.import_lanes
    writing: deque[Future[ImportCounts]] = deque()
    late = PeopleColumns()
    put = partial(subscribers.import_people, tenant_id, source=source, dry_run=dry_run)
    with _made_for_throughput(), ThreadPoolExecutor(lanes, "import") as writers:
        for chunk in chunks:
            for bad in chunk.bad:
                report.note_bad(bad)
                reject(bad)
            people = _named_first(chunk.people, seen, report, late)
            if len(writing) >= lanes:
                report.counts += writing.popleft().result()
            writing.append(writers.submit(put, people))
            if len(late.denials) >= MOST_LATE:
                _finish(writing, report)
                _deny_late(put, late, report)
        _finish(writing, report)
        _deny_late(put, late, report)
    return report


def _finish(writing: deque[Future[ImportCounts]], report: ImportReport) -> None:
    while writing:
        report.counts += writing.popleft().result()


def _deny_late(
    put: Callable[[PeopleColumns], ImportCounts], late: PeopleColumns, report: ImportReport
) -> None:
    """A later line may deny whom an earlier one let in. It waits until that one is written."""
    turned = put(PeopleColumns(denials=late.denials)).deactivated
    report.counts += ImportCounts(unsubscribed=turned)
    late.denials = {}


@contextmanager
def _made_for_throughput() -> Iterator[None]:
    """Rows are millions of small lists without cycles: the collector would look through them for nothing.

    And the writer, back from the database, should not wait 5 ms for the reader to let it go on.
    """
    collecting, patience = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(patience)
        if collecting:
            gc.enable()


def _named_first(
    people: PeopleColumns, seen: SeenKeys, report: ImportReport, late: PeopleColumns
) -> PeopleColumns:
    """The lines that name an address for the first time. What a later one denies is put off."""
    new = seen.new_among(people.keys)
    if all(new):
        return people
    report.duplicates += new.count(False)
    first = people.where(new)
    if people.denials or people.consents:
        named = set(first.keys)
        for key in people.denials.keys() - named:
            late.deny(key, *people.denials[key])
        first.denials = {key: denial for key, denial in people.denials.items() if key in named}
        first.consents = {key: note for key, note in people.consents.items() if key in named}
    return first
