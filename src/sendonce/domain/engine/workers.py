"""Workers and what proves their death."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from sendonce.domain.engine.senders import OWN_SENDER

SEEN_EVERY = 5.0
"""Seconds between two signs of life of a worker."""
SILENT_AFTER = timedelta(seconds=20)
MISSING_AFTER = timedelta(minutes=5)
"""After so long a silence somebody should look what became of the worker."""


class Rest(StrEnum):
    """Why a worker that is at work claims nothing."""

    QUOTA = "quota"  # the provider takes no more letters today
    SENDING_PAUSED = "sending_paused"  # the provider has switched sending off for this account
    THROTTLED = "throttled"  # the provider said "not now"
    CLOCK = "clock"  # the clock jumped, and no second clock agrees yet


class Pulse(NamedTuple):
    """A worker's sign of life: letters accepted per second of late, and why it rests, if it does."""

    rate: float = 0.0
    rests: Rest | None = None
    rest_reason: str | None = None
    rests_until: datetime | None = None


NO_LOCK = ""
"""The lock domain of a worker that holds no lock. Its death shows by the signatures of its letters alone."""

ADOPTED = "the database was adopted"
"""How workers of the time before ended."""
VOUCHED = "adopt --nothing-was-lost"
"""What the audit log calls an operator's word that another database is the same ledger."""


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker process as the ledger knows it. Pid and host are for display only.

    ``lock_domain`` names the directory whose locks can prove this worker's death; only a process
    that sees the same directory may bury it. ``route`` is the way of its letters and of their events: for
    SES the region and the configuration set. ``sender_id`` is the sender that it serves: a process is one
    worker for the environment's own sender, and one more for each other that it serves. ``seen_at`` is when
    it last gave a sign of life, and what comes after it is what it said then. Silence is no proof of death.
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
    route: str = ""
    sender_id: str = OWN_SENDER
    seen_at: datetime | None = None
    rate: float | None = None
    rests: str | None = None
    rest_reason: str | None = None
    rests_until: datetime | None = None

    def is_at_work(self, now: datetime) -> bool:
        """Whether it was heard of lately. For display: a worker that is stopped may still wake up."""
        return self._silence(now) < SILENT_AFTER

    @property
    def has_lock(self) -> bool:
        return self.lock_domain != NO_LOCK

    def is_missing(self, now: datetime) -> bool:
        """Whether it has been silent for so long that a person should look. No proof of death, either.

        One without a lock needs no person: its letters die by themselves, and then it is over.
        """
        return self.has_lock and self.is_silent_for(MISSING_AFTER, now)

    def is_silent_for(self, time: timedelta, now: datetime) -> bool:
        return self._silence(now) >= time

    def _silence(self, now: datetime) -> timedelta:
        heard = self.seen_at or self.started_at
        return now - heard if heard is not None else timedelta.max


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A worker as people see it: ``sending`` counts the jobs that it has claimed and not settled."""

    record: WorkerRecord
    sending: int
    ended_at: datetime | None
    end: str | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """What the ledger has counted for a worker; ``end`` says how it ended, None while it is open."""

    claims: int
    token: str | None
    end: str | None


@dataclass(frozen=True, slots=True)
class ClaimCount:
    """How many claims a worker made, as kept outside the database: a restored one knows of fewer.

    ``adoption`` is how often the database had been adopted by then.
    """

    worker_id: str
    claims: int
    adoption: int


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """Which ledger this is, and how far it has come."""

    ledger_id: str
    pepper: bytes
    fingerprint: str | None
    claim_seq: int
    halted: str | None
    adoptions: int
    since: datetime
    """When it was made here, or last adopted."""
