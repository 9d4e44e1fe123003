"""The mailout: one letter to all active subscribers, once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class MailoutStatus(StrEnum):
    DRAFT = "draft"
    READY = "ready"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


class Phase(StrEnum):
    """Where a started mailout is: no job is claimed before all are planned."""

    PLANNING = "planning"
    RUNNING = "running"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Mailout:
    id: str
    tenant_id: str
    letter_id: str
    name: str
    source: str
    status: MailoutStatus
    phase: Phase | None
    paused: bool
    cancelled: bool
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """One chunk of planning: how many jobs it added, and whether it was the last."""

    added: int
    finished: bool
