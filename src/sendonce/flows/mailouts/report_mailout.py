"""Report a mailout: every recipient and what became of the letter, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from sendonce.domain.engine.reports import RecipientOutcome
from sendonce.ports.engine import Jobs

PAGE = 5_000

COLUMNS = (
    *("recipient", "outcome", "reason", "code", "message_id", "attempts"),
    *("claimed_at", "settled_at", "delivered_at", "bounced_at", "complained_at"),
)
row_of: Callable[[RecipientOutcome], tuple[object, ...]] = attrgetter(*COLUMNS)


def recipients(jobs: Jobs, mailout_id: str, *, only_errors: bool = False) -> Iterator[RecipientOutcome]:
    """All recipients in the order of their addresses, or those whose letter failed, came back, was
    complained of or is in doubt."""
    after = ""
    while page := jobs.outcomes(mailout_id, after=after, limit=PAGE, only_errors=only_errors):
        yield from page
        after = page[-1].key
