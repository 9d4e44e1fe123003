"""The workers, their journals, and what they share: permits to send and leases on duties."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.engine.workers import Pulse, WorkerRecord, WorkerStatus


class Roster(Protocol):
    """The workers, as they and those who bury them need it."""

    def register(self, worker: WorkerRecord) -> None: ...

    def end(self, worker_id: str, how: str) -> None:
        """The worker is over; its permits return. Raises RefusedByRule while it has jobs in sending."""

    def open(self) -> Sequence[WorkerRecord]:
        """Those that are not over. A listing."""

    def see(self, worker_id: str, pulse: Pulse) -> None:
        """A sign of life: the worker is at work now."""

    def claims_of(self, worker_ids: Sequence[str]) -> dict[str, int]:
        """How many claims are counted for each of these workers, open or not; unknown ones are left out."""


class Workers(Roster, Protocol):
    """The same with what people look at."""

    def find(self, worker_id: str) -> WorkerStatus | None: ...

    def statuses(self, *, ended: int = 0) -> Sequence[WorkerStatus]:
        """All open workers, the oldest first, then the last ``ended`` of those that are over."""


class Journal(Protocol):
    """The living worker's own record of what is on the wire, outside the database."""

    def wire(self, job_id: str, attempt: int) -> bool:
        """Before the first byte of the body. False: it could not be written, so do not send."""

    def reply(self, job_id: str, attempt: int, outcome: Outcome) -> None: ...

    def claimed(self, claim_seq: int, claims: int) -> None:
        """The number of the newest claim, and how many claims this worker made."""


class Permits(Protocol):
    def renew(self, key: str, worker_id: str, rate: int, held: int) -> int:
        """Renew the lease on this worker's permits: how many it may hold, their sum over all ≤ ``rate``.

        ``held`` is how many it holds now. The answer may be lower: then it retires permits as they
        come home, and tells so at its next renewal.
        """

    def release(self, key: str, worker_id: str) -> None: ...


class Leases(Protocol):
    """Work that one process at a time may do, as long as it says that it lives. No letter goes by it."""

    def take(self, name: str, holder: str, lasting: timedelta) -> bool:
        """Take or keep a lease, by the store's clock; False while somebody else has it."""

    def leave(self, name: str, holder: str) -> None: ...
