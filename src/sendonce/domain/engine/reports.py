"""What became of each recipient of a dispatch, for reports."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import JobState


class RecipientOutcome(NamedTuple):
    """``key`` is the place in the order of the report. For a letter that came back or was complained of,
    ``code`` and ``reason`` are what the world told."""

    key: str
    recipient: str
    state: JobState
    reason: str | None
    code: str | None
    message_id: str | None
    attempts: int
    claimed_at: datetime | None
    settled_at: datetime | None
    delivered_at: datetime | None
    bounced_at: datetime | None
    complained_at: datetime | None
    rejected_at: datetime | None

    @property
    def outcome(self) -> str:
        """The state, or for a sent letter the worst that was told of it."""
        if self.state == JobState.SENT:
            if self.complained_at:
                return "complained"
            if self.bounced_at:
                return "bounced"
            if self.rejected_at:
                return "rejected"
            if self.delivered_at:
                return "delivered"
        return str(self.state)

    @property
    def is_error(self) -> bool:
        return self.state in ERROR_STATES or self.outcome in {"bounced", "complained", "rejected"}


ERROR_STATES = (JobState.FAILED, JobState.DEAD, JobState.IN_DOUBT)
TROUBLES = (EventKind.BOUNCE, EventKind.COMPLAINT, EventKind.REJECT)
"""Events that tell why a letter that was sent did no good."""

COLUMNS = (
    *("recipient", "outcome", "reason", "code", "message_id", "attempts"),
    *("claimed_at", "settled_at", "delivered_at", "bounced_at", "complained_at"),
)
row_of: Callable[[RecipientOutcome], tuple[object, ...]] = attrgetter(*COLUMNS)
"""A line of a report, as its titles (``COLUMNS``) name it."""
