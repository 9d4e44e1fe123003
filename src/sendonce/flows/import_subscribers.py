"""Import subscribers: stream the rows, write them in chunks, report every bad line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from sendonce.domain.subscribers import BadRow, ImportCounts, NewSubscriber, SubscriberRow
from sendonce.ports import Subscribers

CHUNK = 5_000
MOST_SHOWN = 20


@dataclass
class ImportReport:
    """``bad_rows`` holds the first bad lines; ``invalid`` counts them all."""

    counts: ImportCounts = field(default_factory=ImportCounts)
    invalid: int = 0
    bad_rows: list[BadRow] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        bad = [{"line": row.line, "reason": row.reason} for row in self.bad_rows]
        return {**asdict(self.counts), "invalid": self.invalid, "invalid_lines": bad}

    def note_bad(self, row: BadRow) -> None:
        self.invalid += 1
        if len(self.bad_rows) < MOST_SHOWN:
            self.bad_rows.append(row)


def import_subscribers(
    subscribers: Subscribers,
    tenant_id: str,
    rows: Iterable[SubscriberRow | BadRow],
    tick: Callable[[int], None],
) -> ImportReport:
    """Chunks are transactions: an import that is cut off can simply be run again."""
    report = ImportReport()
    chunk: list[NewSubscriber] = []

    def flush() -> None:
        report.counts += subscribers.upsert(tenant_id, chunk)
        tick(len(chunk))
        chunk.clear()

    for row in rows:
        if isinstance(row, BadRow):
            report.note_bad(row)
            continue
        chunk.append(NewSubscriber(row.address, row.name, row.attributes))
        if len(chunk) >= CHUNK:
            flush()
    flush()
    return report
