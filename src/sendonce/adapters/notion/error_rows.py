"""The rows of «Ошибки»: what they should be is worked out from the ledger, and compared with what is there.

A letter has one row, whatever becomes of it: a doubt that turns into a bounce changes its row, and one that
is settled for good loses it. Each row costs one request when it changes, and none while it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from sendonce.adapters.notion.reports import MOST_ERROR_ROWS, ErrorRow, NotionReports, rest_row
from sendonce.adapters.notion.words import IN_DOUBT, KINDS, NO_WORDS, fill
from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.errors import BadInput, NotFound
from sendonce.ports.store import Store

KnownRows = dict[str, tuple[str, str]]
"""By the key of a row: its page in Notion, and the sum of what was written there."""

_EVENTS = {
    "bounced": EventKind.BOUNCE,
    "complained": EventKind.COMPLAINT,
    "rejected": EventKind.REJECT,
}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """``make`` reads what else belongs into the row; ``sum`` tells beforehand whether it changed."""

    key: str
    sum: str
    make: Callable[[], ErrorRow]


class ErrorRows:
    def __init__(self, store: Store, reports: NotionReports) -> None:
        self._store = store
        self._reports = reports

    def reconcile(self, mailout: Mailout, known: KnownRows, most: int, *, unsure: bool = False) -> int:
        """Bring at most so many rows up to date; how many were. ``known`` is kept current as it goes on.

        With ``unsure`` it looks first what is there: rows were made in the last round, and another worker may
        have made the same.
        """
        language = self._reports.errors_language() if known or self._has_troubles(mailout) else ""
        wanted = list(self._wanted(mailout, known, language)) if language else []
        if unsure or any(row.key not in known for row in wanted):
            self._adopt(mailout, known)
        changed = [row for row in wanted if known.get(row.key, ("", ""))[1] != row.sum]
        gone = [key for key in known if key not in {row.key for row in wanted}]
        for key in gone[:most]:
            self._remove(known.pop(key)[0])
        for row in changed[: max(0, most - len(gone))]:
            self._write(row, known)
        return min(most, len(gone) + len(changed))

    def _has_troubles(self, mailout: Mailout) -> bool:
        return self._store.jobs.troubles(mailout.id, 1)[1] > 0

    def _adopt(self, mailout: Mailout, known: KnownRows) -> None:
        """Rows that are there although we know nothing of them: the reply to their creation was lost, or it
        came late, or another worker made them. Of two with one key the older stays."""
        for key, pages in self._reports.rows_of(mailout.id).items():
            if known.get(key, ("", ""))[0] != pages[0]:
                known[key] = (pages[0], "")
            for twin in pages[1:]:
                self._remove(twin)

    def _remove(self, page: str) -> None:
        with suppress(NotFound, BadInput):  # somebody else removed it
            self._reports.trash_row(page)

    def _write(self, row: _Wanted, known: KnownRows) -> None:
        page = known.get(row.key, ("", ""))[0]
        try:
            if page:
                self._reports.update_row(page, row.make())
            else:
                page = self._reports.put_error_row(row.make(), may_exist=False)
        except (NotFound, BadInput):
            if not page or self._reports.has_row(page):
                raise
            # Somebody removed the row: it is made again when it is missed the next time.
            known.pop(row.key, None)
            return
        known[row.key] = (page, row.sum)

    # -- what should be there ------------------------------------------------------------------

    def _wanted(self, mailout: Mailout, known: KnownRows, language: str) -> Iterable[_Wanted]:
        """A row for each of the first errors, those that are shown already before others; then the rest."""
        shown = [key.partition(":")[2] for key in known if key.count(":") == 1 and not key.endswith(":rest")]
        jobs, _ = self._store.jobs.troubles(mailout.id, MOST_ERROR_ROWS, among=shown) if shown else ([], 0)
        first, total = self._store.jobs.troubles(mailout.id, MOST_ERROR_ROWS)
        chosen = {job.id: job for job in (*jobs, *first)}
        for job in list(chosen.values())[:MOST_ERROR_ROWS]:
            yield self._of_job(mailout, job, language)
        if total > MOST_ERROR_ROWS:
            yield self._of_rest(mailout, total - MOST_ERROR_ROWS, language)

    def _of_job(self, mailout: Mailout, job: Job, language: str) -> _Wanted:
        kind = _kind(job)
        told = (kind, job.recipient, job.reason, job.code, job.settled_at, job.bounced_at, job.complained_at)
        key = f"{mailout.id}:{job.id}"
        return _Wanted(key, _sum(language, *told), lambda: self._row(mailout, job, kind, language))

    def _of_rest(self, mailout: Mailout, hidden: int, language: str) -> _Wanted:
        command = f"sendonce mailout report {mailout.id} --errors-csv errors.csv"
        row = rest_row(mailout.id, mailout.source_id or "", hidden, command, language)
        return _Wanted(row.key, _sum(language, hidden), lambda: row)

    def _row(self, mailout: Mailout, job: Job, kind: str, language: str) -> ErrorRow:
        code, reason = self._told_by_the_world(job, kind) if kind in _EVENTS else (job.code, job.reason)
        message = reason or NO_WORDS[language]
        if kind == "in_doubt":
            message = fill(IN_DOUBT, language, reason=reason or "?")
        return ErrorRow(
            key=f"{mailout.id}:{job.id}",
            page=mailout.source_id or "",
            email=job.recipient,
            kind=KINDS[kind][language],
            message=message,
            code=code or "",
            time=job.complained_at or job.bounced_at or job.rejected_at or job.settled_at,
        )

    def _told_by_the_world(self, job: Job, kind: str) -> tuple[str | None, str | None]:
        told = [event for event in self._store.events.all(job_id=job.id) if event.kind == _EVENTS[kind]]
        return (told[0].code or told[0].bounce_subtype, told[0].reason) if told else (None, None)


def _kind(job: Job) -> str:
    """As in the CSV (``RecipientOutcome.outcome``)."""
    if job.state != JobState.SENT:
        return str(job.state)
    if job.complained_at:
        return "complained"
    return "bounced" if job.bounced_at else "rejected"


def _sum(*values: object) -> str:
    return sha256(repr(values).encode("utf-8", "replace")).hexdigest()[:16]


def known_rows(told: object) -> KnownRows:
    """As they were kept. What is not of this shape counts as unknown, and is found again by its key."""
    rows = told if isinstance(told, dict) else {}
    pairs: Sequence[tuple[str, object]] = list(rows.items())
    return {key: (str(it[0]), str(it[1])) for key, it in pairs if isinstance(it, list) and len(it) == 2}
