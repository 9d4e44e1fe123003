"""Workers and what proves their death."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker process as the ledger knows it. Pid and host are for display only.

    ``lock_domain`` names the directory whose locks can prove this worker's death; only a process
    that sees the same directory may bury it.
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
