"""How the house stands: all that the status shows and Prometheus is told, at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sendonce.domain.engine.alarms import Alarm
from sendonce.domain.engine.gauges import DayRates, Gauges
from sendonce.domain.engine.jobs import Books
from sendonce.domain.engine.mailbox.found import MailboxReading
from sendonce.domain.engine.senders import SenderHold
from sendonce.domain.engine.workers import WorkerRecord


@dataclass(frozen=True, slots=True)
class Overview:
    """``tenants`` are as of the last reading of the gauges, at most minutes ago."""

    now: Gauges
    rates: DayRates
    tenants: Mapping[str, Books]
    alarms: Sequence[Alarm]
    holds: Sequence[SenderHold]
    workers: Sequence[WorkerRecord]
    mailboxes: Sequence[MailboxReading]
    last_event: datetime | None

    @property
    def at_work(self) -> int:
        return sum(worker.is_at_work(self.now.taken_at) for worker in self.workers)

    @property
    def missing(self) -> int:
        return sum(worker.is_missing(self.now.taken_at) for worker in self.workers)
