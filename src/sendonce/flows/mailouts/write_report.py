"""Write the report of a mailout: every recipient and what became of the letter, page by page."""

from __future__ import annotations

from collections.abc import Iterator

from sendonce.domain.engine.reports import RecipientOutcome
from sendonce.domain.engine.tenants import DispatchId
from sendonce.ports.engine import Jobs
from sendonce.ports.mailouts import MailoutStore, Reports

PAGE = 5_000


def write_report(store: MailoutStore, reports: Reports, mailout_id: DispatchId) -> str:
    """Where it is. Raises BadInput where it cannot be written."""
    reports.put(mailout_id, recipients(store.jobs, mailout_id))
    return reports.place_of(mailout_id)


def recipients(
    jobs: Jobs, mailout_id: DispatchId, *, only_errors: bool = False
) -> Iterator[RecipientOutcome]:
    """All recipients in the order of their addresses, or those whose letter failed, came back, was
    complained of or is in doubt."""
    after = ""
    while page := jobs.outcomes(mailout_id, after=after, limit=PAGE, only_errors=only_errors):
        yield from page
        after = page[-1].key
