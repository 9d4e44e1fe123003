"""Write the report of every mailout that ended, once."""

from __future__ import annotations

import logging

from sendonce.domain.engine.dispatches import ended_topic
from sendonce.domain.mailouts.mailouts import KIND
from sendonce.errors import BadInput
from sendonce.flows.mailouts.write_report import write_report
from sendonce.ports.engine import Archive
from sendonce.ports.mailouts import MailoutStore, Reports

log = logging.getLogger(__name__)

TOPIC = ended_topic(KIND)
ARCHIVED = "reports"
"""Their kind in the archive."""


def write_due_reports(store: MailoutStore, reports: Reports, archive: Archive | None = None) -> None:
    """What cannot be written now is tried again. ``archive`` gets a copy of each. Raises Unavailable."""
    for entry_id, body in store.outbox.due(TOPIC, 10):
        mailout_id = body["dispatch_id"]
        try:
            where = write_report(store, reports, mailout_id)
        except BadInput as exc:
            log.error(
                "a report cannot be written", extra={"fields": {"mailout": mailout_id, "error": str(exc)}}
            )
            return
        if archive is not None:
            archive.keep(ARCHIVED, f"{mailout_id}.csv", reports.read(mailout_id), store.ledger.now())
        store.outbox.done(entry_id)
        log.info("report written", extra={"fields": {"mailout": mailout_id, "file": where}})
