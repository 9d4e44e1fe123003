"""Keep «Письма» and «Ошибки» in Notion in step with the ledger.

Nothing is queued: what Notion should show is worked out from the ledger and compared with what was
last written there. Notion may be down for days; the next round writes what is true then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from sendonce.adapters.notion.reports import (
    MOST_ERROR_ROWS,
    ErrorRow,
    LetterCounts,
    NotionReports,
    rest_row,
)
from sendonce.domain.events import EventKind
from sendonce.domain.jobs import Job, JobState
from sendonce.domain.mailouts import Mailout, MailoutStatus, Phase
from sendonce.errors import BadInput, NotFound, Refused
from sendonce.ports import Store

log = logging.getLogger(__name__)

MOST_MAILOUTS = 20
_FAILED = {JobState.FAILED: "failed", JobState.DEAD: "failed", JobState.IN_DOUBT: "in doubt"}


class NotionReporter:
    def __init__(self, store: Store, reports: NotionReports, *, with_errors: bool) -> None:
        self._store = store
        self._reports = reports
        self._with_errors = with_errors

    def run(self) -> None:
        """One round. Raises Unavailable when Notion does not answer: the next round goes on from there."""
        for mailout, reported in self._store.mailouts.with_stale_report("notion", MOST_MAILOUTS):
            if mailout.source_id is not None and not mailout.is_test and self._worth_telling(mailout):
                self._bring_up_to_date(mailout, json.loads(reported) if reported else {})

    def _worth_telling(self, mailout: Mailout) -> bool:
        """A page that is not read yet keeps its author's word: it decides whether the page may be sent."""
        if mailout.status == MailoutStatus.READY:
            return mailout.reason is not None
        return mailout.phase != Phase.FETCHING

    def _bring_up_to_date(self, mailout: Mailout, reported: dict[str, Any]) -> None:
        counts = self._counts(mailout)
        view = {"status": str(mailout.status), "reason": mailout.reason or "", "counts": asdict(counts)}
        rows = list(self._error_rows(mailout)) if self._with_errors and mailout.started_at else []
        told = set(reported.get("errors", ()))
        new_rows = [row for row in rows if row.key not in told]
        if view == reported.get("view") and not new_rows:
            return
        try:
            if view != reported.get("view"):
                self._tell_status(mailout, counts, told=reported.get("view", {}).get("status"))
            for row in new_rows:
                self._reports.put_error_row(row)
                told.add(row.key)
        except (BadInput, NotFound, Refused) as exc:
            # The page or the table is gone or changed: telling it again would fail again.
            log.error("Notion cannot be told", extra={"fields": {"mailout": mailout.id, "error": str(exc)}})
        self._store.mailouts.set_reported(mailout.id, json.dumps({"view": view, "errors": sorted(told)}))

    def _tell_status(self, mailout: Mailout, counts: LetterCounts, *, told: str | None) -> None:
        """A page of which we never said "sending" keeps its author's status: ready is not ours to say."""
        assert mailout.source_id is not None
        authors_own = mailout.status == MailoutStatus.READY and told in (None, MailoutStatus.READY)
        missing = self._reports.set_status(
            mailout.source_id,
            None if authors_own else mailout.status,
            reason=mailout.reason or "",
            counts=counts,
            sent_at=mailout.sent_at,
            warnings=mailout.warnings,
        )
        if missing:
            log.warning("columns are missing in Notion", extra={"fields": {"columns": list(missing)}})

    def _counts(self, mailout: Mailout) -> LetterCounts:
        books = self._store.jobs.books(mailout.id)
        return LetterCounts(
            planned=books.planned,
            sent=books.sent,
            delivered=books.delivered,
            bounced=books.bounced,
            complained=books.complained,
            unsubscribed=self._store.jobs.count_unsubscribed(mailout.id),
            failed=books.failed + books.dead,
            in_doubt=books.in_doubt,
        )

    def _error_rows(self, mailout: Mailout) -> Iterable[ErrorRow]:
        """One row an error, up to a cap, then one that points to the CSV."""
        jobs, total = self._store.jobs.troubles(mailout.id, MOST_ERROR_ROWS)
        for job in jobs:
            yield self._error_row(mailout, job)
        if total > len(jobs):
            command = f"sendonce mailout report {mailout.id} --errors-csv errors.csv"
            yield rest_row(mailout.id, mailout.source_id or "", total - len(jobs), command)

    def _error_row(self, mailout: Mailout, job: Job) -> ErrorRow:
        kind = _FAILED.get(job.state) or ("complaint" if job.complained_at else "bounce")
        code, reason = job.code, job.reason
        if kind in (EventKind.BOUNCE, EventKind.COMPLAINT):
            told = [e for e in self._store.events.all(job_id=job.id) if e.kind == kind]
            code = told[0].code or told[0].bounce_subtype if told else None
            reason = told[0].reason if told else None
        return ErrorRow(
            key=f"{mailout.id}:{job.id}:{kind}",
            page=mailout.source_id or "",
            email=job.recipient,
            kind=kind,
            message=reason or kind,
            code=code or "",
            time=job.complained_at or job.bounced_at or job.settled_at,
        )
