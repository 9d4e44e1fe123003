"""Workers and what proves their death."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

SEEN_EVERY = 5.0
"""Seconds between two signs of life of a worker."""
SILENT_AFTER = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker process as the ledger knows it. Pid and host are for display only.

    ``lock_domain`` names the directory whose locks can prove this worker's death; only a process
    that sees the same directory may bury it. ``seen_at`` is when it last said that it is at work: silence
    is no proof of death.
    """

    id: str
    name: str
    transport: str
    lock_domain: str
    lock_file: str
    inode: int
    boot_id: str
    host: str
    pid: int
    started_at: datetime | None = None
    seen_at: datetime | None = None

    def is_at_work(self, now: datetime) -> bool:
        """Whether it was heard of lately. For display: a worker that is stopped may still wake up."""
        heard = self.seen_at or self.started_at
        return heard is not None and now - heard < SILENT_AFTER


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker as people see it: ``sending`` counts the jobs that it has claimed and not settled."""

    record: WorkerRecord
    sending: int
    ended_at: datetime | None
    end: str | None


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """Which ledger this is, and how far it has come."""

    ledger_id: str
    pepper: bytes
    fingerprint: str | None
    claim_seq: int
    halted: str | None
