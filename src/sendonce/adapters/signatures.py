"""Life and death without a disk: letters die by their signatures.

A request to SES is signed with the time of its letter's claim and never signed again, and AWS refuses a
signature that is too old. So what a worker had claimed is dead a while later, whatever became of the worker.
Nobody sees its life, and no journal tells which letters never left: all that it had claimed, two groups at
the most, is in doubt after its death.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.engine.workers import NO_LOCK, ClaimCount, WorkerRecord


class Provider(Protocol):
    """Refuses what was signed too long ago."""

    name: str

    async def server_time(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class SignatureExpiry:
    """ports.mortality.Expiry, by the provider's own clock."""

    provider: Provider
    window: timedelta

    @property
    def transport(self) -> str:
        return self.provider.name

    async def passed(self) -> datetime:
        return await self.provider.server_time() - self.window


class UnseenLife:
    """ports.mortality.Life that leaves no trace."""

    lock_file = ""
    inode = 0

    def __init__(self, worker_id: str, adoption: int) -> None:
        self.highest_claim = 0
        self.count = ClaimCount(worker_id, 0, adoption)

    def wire(self, job_id: str, attempt: int) -> bool:  # noqa: ARG002 (a port's signature)
        return True

    def reply(self, job_id: str, attempt: int, outcome: Outcome) -> None:
        """Nobody could read it."""

    def claimed(self, claim_seq: int, claims: int) -> None:
        self.highest_claim = max(self.highest_claim, claim_seq)
        self.count = replace(self.count, claims=claims)

    def close(self, *, settled: bool) -> None:
        """Nothing is held."""


class Diskless:
    """ports.mortality.Mortality of a place where nothing outlives the process."""

    lock_domain = NO_LOCK

    def enlist(self, name: str, worker_id: str, slots: int, adoption: int) -> UnseenLife:  # noqa: ARG002 (a port's signature)
        return UnseenLife(worker_id, adoption)

    def sweep(self, name: str, known: set[str]) -> None:
        """Nobody leaves anything."""

    @contextmanager
    def open_if_dead(self, worker: WorkerRecord) -> Iterator[None]:  # noqa: ARG002 (a port's signature)
        """No lock can be seen from here, so no death can."""
        yield None

    def sees_alive(self, worker: WorkerRecord) -> bool:  # noqa: ARG002 (a port's signature)
        return False

    def highest_claim(self) -> int:
        return 0

    def claim_counts(self) -> Sequence[ClaimCount]:
        return ()

    def keep_claim(self, claim_seq: int, count: ClaimCount | None) -> None:
        """There is no place for it."""

    def boot_id(self) -> str:
        return ""

    def require_writable(self) -> None:
        """Nothing is written."""
