"""Looking at the message jobs: what sending asks, and what people ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sendonce.domain.engine.doubts import Doubt
from sendonce.domain.engine.jobs import Books, Job, JobState
from sendonce.domain.engine.reports import RecipientOutcome
from sendonce.domain.engine.sent_folder import AcceptedNear
from sendonce.domain.engine.tenants import DispatchId


class Queue(Protocol):
    """What sending asks about jobs beside the ledger. Listings."""

    def oldest_due(self, sender_id: str | None = None) -> datetime | None:
        """The due time of the job that has waited longest, if any is claimable; of one sender, or of all."""

    def handed_over_since(self, moment: datetime) -> int:
        """At most how many letters a provider was given since then: claimed jobs, and canaries.

        Reads the jobs of dispatches that were open since, so not for every turn.
        """


class Jobs(Queue, Protocol):
    """Looking at the ledger, for people. All are listings, except ``get``."""

    def books(self, dispatch_id: DispatchId) -> Books: ...

    def count_by_state(self) -> dict[str, int]: ...

    def count_unsubscribed(self, dispatch_id: DispatchId) -> int:
        """Recipients of a dispatch who unsubscribed after it was sent to them."""

    def troubles(
        self, dispatch_id: DispatchId, limit: int, *, among: Sequence[str] | None = None
    ) -> tuple[Sequence[Job], int]:
        """Jobs that are errors (``RecipientOutcome.is_error``): the first, and how many there are.

        With ``among`` only jobs of these ids count.
        """

    def next_due(self, dispatch_id: DispatchId) -> Job | None:
        """The scheduled job of a dispatch that comes due first."""

    def list(
        self,
        *,
        states: Sequence[JobState] = (),
        dispatch_id: DispatchId | None = None,
        worker_id: str | None = None,
        code: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> Sequence[Job]:
        """Jobs in the order of their ids, for people; page with ``after``."""

    def get(self, job_id: str) -> Job | None: ...

    def accepted_near(self, doubt: Doubt, sender_id: str, limit: int) -> AcceptedNear:
        """The jobs of a sender that were accepted on the doubt's route nearest to it, at most ``limit`` on
        each side: claimed up to five minutes before it (or in the same moment), and up to five after it.
        Those that have a Send event already are left out."""

    def with_prefix(self, prefix: str, limit: int) -> Sequence[str]:
        """The ids that begin so (see ``domain.ids.is_prefix``), at most ``limit``."""

    def outcomes(
        self, dispatch_id: DispatchId, *, after: str = "", limit: int = 5000, only_errors: bool = False
    ) -> Sequence[RecipientOutcome]:
        """What became of each recipient, in the order of their keys; page with ``after``."""
