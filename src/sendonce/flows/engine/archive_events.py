"""Move the raw text of old events from the database to the archive, and old files out of the archive.

What an event said stays in its row: its keys, by which a late copy is known, its times, which speak for or
against a letter in doubt, and what reports and people are shown. Only the text that it came in goes, which is
most of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sendonce.domain.engine.events import RawEvent
from sendonce.ports.engine import Archive, EngineStore

log = logging.getLogger(__name__)

KIND = "events"
CHUNK = 500


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """How long raw text stays in the database, and after that in the archive: None is for ever.

    ``exports`` are the kinds of records that others keep there, as old as they are.
    """

    in_database: timedelta
    in_archive: timedelta | None
    exports: tuple[str, ...] = ()


def archive_events(store: EngineStore, archive: Archive, rules: ArchiveRules) -> int:
    """One round; how many events lost their raw text. A crash between file and rows writes the file again."""
    now = store.ledger.now()
    archived = 0
    while events := store.events.raw_before(now - rules.in_database, CHUNK):
        told = [event for event in events if event.raw]
        if told:
            archive.keep(KIND, f"{told[0].id}.jsonl", _as_lines(told), told[0].received_at)
        if not store.events.drop_raw(events):
            break  # another process is at it
        archived += len(told)
    if archived:
        log.info("old events archived", extra={"fields": {"events": archived}})
    if rules.in_archive is not None:
        archive.prune(KIND, now - rules.in_database - rules.in_archive)
        for kind in rules.exports:
            archive.prune(kind, now - rules.in_archive)
    return archived


def _as_lines(events: Sequence[RawEvent]) -> bytes:
    lines = (
        {
            "event_id": event.event_id,
            "kind": event.kind,
            "job_id": event.job_id,
            "received_at": event.received_at.isoformat(),
            "raw": event.raw,
        }
        for event in events
    )
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()
