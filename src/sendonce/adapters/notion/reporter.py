"""Keep «Письма» and «Ошибки» in Notion in step with the ledger.

Nothing is queued: what Notion should show is worked out from the ledger and compared with what was
last written there. Notion may be down for days; the next round writes what is true then.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any
from zoneinfo import ZoneInfo

from sendonce.adapters.notion.error_rows import ErrorRows, KnownRows, known_rows
from sendonce.adapters.notion.names import CANCELLED
from sendonce.adapters.notion.reports import LetterCounts, NotionReports
from sendonce.adapters.notion.words import CANCELLED as CANCELLED_WORDS
from sendonce.adapters.notion.words import (
    PASSING,
    pace_words,
    standstill_words,
    translated,
    translated_warning,
)
from sendonce.domain.engine.jobs import Books
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus, Phase
from sendonce.domain.mailouts.progress import Progress, Standstill
from sendonce.errors import BadInput, NotFound, RefusedByRule
from sendonce.ports.store import Store

log = logging.getLogger(__name__)

MOST_MAILOUTS = 20
# A request each, at most two and a half a second: the rest comes in the next rounds.
MOST_ROWS_A_ROUND = 25
# A page that is gone, or a table that lacks a column, is not mended within seconds.
_REST_AFTER_REFUSAL = 60.0
_OVER = (MailoutStatus.SENT, MailoutStatus.FAILED)

Explain = Callable[[Mailout, Books], Progress]


class NotionReporter:
    """``explain`` tells how a mailout gets on; times are told by the clock of ``zone``."""

    def __init__(
        self,
        store: Store,
        reports: NotionReports,
        *,
        with_errors: bool,
        explain: Explain | None = None,
        zone: ZoneInfo | None = None,
    ) -> None:
        self._store = store
        self._reports = reports
        self._rows = ErrorRows(store, reports) if with_errors else None
        self._explain = explain
        self._zone = zone or ZoneInfo("UTC")
        self._resting: dict[str, float] = {}
        self._room = MOST_ROWS_A_ROUND

    def run(self) -> None:
        """One round. Raises Unavailable when Notion does not answer: the next round goes on from there."""
        self._room = MOST_ROWS_A_ROUND
        for mailout, reported in self._store.mailouts.with_stale_report("notion", MOST_MAILOUTS):
            told = json.loads(reported) if reported else {}
            if mailout.source_id is not None and not mailout.is_test and _worth_telling(mailout, told):
                self._bring_up_to_date(mailout, told)

    def _bring_up_to_date(self, mailout: Mailout, told: dict[str, Any]) -> None:
        if time.monotonic() < self._resting.get(mailout.id, 0.0):
            return
        view, rows = told.get("view") or {}, known_rows(told.get("rows"))
        before = dict(rows)
        try:
            view = self._tell_page(mailout, view)
            self._tell_errors(mailout, rows, unsure=told.get("unsure") is True)
        except (BadInput, NotFound, RefusedByRule) as exc:
            self._resting[mailout.id] = time.monotonic() + _REST_AFTER_REFUSAL
            log.error("Notion cannot be told", extra={"fields": {"mailout": mailout.id, "error": str(exc)}})
        finally:
            now = {"view": view, "rows": rows, "unsure": bool(rows.keys() - before.keys())}
            if json.dumps(now) != json.dumps(told):
                self._store.mailouts.set_reported(mailout.id, json.dumps(now))

    def _tell_page(self, mailout: Mailout, told: dict[str, Any]) -> dict[str, Any]:
        """Write what changed; the view that the page shows now."""
        books = self._store.jobs.books(mailout.id)
        counts, progress = self._counts(mailout, books), self._progress(mailout, books)
        view = {
            "status": _page_status(mailout),
            "reason": mailout.reason or "",
            "standstill": _as_list(progress.standstill),
            "pace": pace_words(progress, "en", self._zone),
            "counts": asdict(counts),
            # Whoever pressed the button again is told again why nothing happens.
            "event": mailout.page_event.id if mailout.page_event else None,
        }
        if view != told:
            self._write(mailout, counts, progress, told.get("status"))
        return view

    def _write(self, mailout: Mailout, counts: LetterCounts, progress: Progress, told: str | None) -> None:
        """A page of which we never said "sending" keeps its author's status: ready is not ours to say."""
        assert mailout.source_id is not None
        authors_own = mailout.status == MailoutStatus.READY and told in (None, MailoutStatus.READY)
        language = self._reports.letters_language()
        missing = self._reports.set_status(
            mailout.source_id,
            None if authors_own else _page_status(mailout),
            instead=mailout.status,
            reason=self._reason(mailout, progress, language),
            counts=counts,
            sent_at=mailout.sent_at if counts.sent or counts.in_doubt else None,
            warnings=[translated_warning(warning, language) for warning in mailout.warnings],
        )
        if missing:
            log.warning("columns are missing in Notion", extra={"fields": {"columns": list(missing)}})

    def _reason(self, mailout: Mailout, progress: Progress, language: str) -> str:
        if mailout.cancelled and mailout.status in _OVER:
            return CANCELLED_WORDS[language]
        if progress.standstill is not None:
            return standstill_words(progress.standstill, language, self._zone)
        return translated(mailout.reason or "", language) or pace_words(progress, language, self._zone)

    def _progress(self, mailout: Mailout, books: Books) -> Progress:
        found = self._explain(mailout, books) if self._explain else Progress(None, None, None, 0)
        passes = found.standstill is not None and found.standstill.cause in PASSING
        return replace(found, standstill=None) if passes else found

    def _tell_errors(self, mailout: Mailout, rows: KnownRows, *, unsure: bool) -> None:
        if self._rows is not None and (mailout.started_at or rows) and self._room > 0:
            self._room -= self._rows.reconcile(mailout, rows, self._room, unsure=unsure)

    def _counts(self, mailout: Mailout, books: Books) -> LetterCounts:
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


def _worth_telling(mailout: Mailout, told: dict[str, Any]) -> bool:
    """A page that is not read yet keeps its author's word: it decides whether the page may be sent."""
    if mailout.status == MailoutStatus.READY:
        return mailout.reason is not None or mailout.scheduled or bool(told)
    return mailout.phase != Phase.FETCHING


def _page_status(mailout: Mailout) -> str:
    return CANCELLED if mailout.cancelled and mailout.status in _OVER else str(mailout.status)


def _as_list(it: Standstill | None) -> list[str]:
    """To the minute: a time that moves by seconds is no news."""
    if it is None:
        return []
    time_told = f"{it.next_try_at:%Y-%m-%d %H:%M}" if it.next_try_at else ""
    return [str(it.cause), it.detail, it.fix, time_told]
