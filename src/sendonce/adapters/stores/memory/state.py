"""What the store in memory remembers: rows in dictionaries, one lock, one clock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from threading import RLock
from typing import Any

from sendonce.domain.engine.dispatches import Dispatch, DispatchPhase
from sendonce.domain.engine.event_route import Receiver
from sendonce.domain.engine.events import DeliveryEvent, UnreadableEvent
from sendonce.domain.engine.ids import time_ordered_id
from sendonce.domain.engine.jobs import Job, JobState
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.mailbox.found import FoundMail, MailboxReading, MailCursor
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.senders import SenderHold
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.engine.workers import WorkerRecord
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.domain.people.sign_ups import SignUp
from sendonce.domain.people.subscribers import Subscriber
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import EVERYBODY, Suppression, SuppressionReason


@dataclass(slots=True)
class JobRow:
    """A message job that can be moved. ``as_job`` gives the value that leaves the store."""

    id: str
    tenant_id: TenantId
    dispatch_id: DispatchId
    recipient: str
    recipient_key: str
    state: JobState
    due_at: datetime
    fields: dict[str, Any]
    attempt: int = 0
    tries: int = 0
    accepted_attempt: int | None = None
    claim_token: str | None = None
    reason: str | None = None
    code: str | None = None
    message_id: str | None = None
    worker_id: str | None = None
    claimed_at: datetime | None = None
    settled_at: datetime | None = None
    death_proof: str | None = None
    death_proof_at: datetime | None = None
    absence_proof: str | None = None
    send_event_at: datetime | None = None
    delivered_at: datetime | None = None
    bounced_at: datetime | None = None
    complained_at: datetime | None = None
    rejected_at: datetime | None = None
    duplicate_at: datetime | None = None
    letter_id: str | None = None
    thread: dict[str, Any] | None = None
    priority: int = 0

    def as_job(self) -> Job:
        return Job(**{f.name: getattr(self, f.name) for f in fields(Job)})


@dataclass(slots=True)
class DispatchRow:
    dispatch: Dispatch
    awake: bool = False
    served: float = 0.0
    own_times: bool = False
    planner: str | None = None
    planner_until: datetime | None = None

    def reopen(self) -> None:
        """Scheduled jobs come in."""
        if self.dispatch.phase == DispatchPhase.OVER:
            self.dispatch = replace(self.dispatch, phase=DispatchPhase.RUNNING, result=None, ended_at=None)


@dataclass(slots=True)
class MailoutRow:
    """``mailout`` is what its own row says; see ``Mailout.seen_through``."""

    mailout: Mailout
    reported: str | None = None
    plan_cursor: str = ""


@dataclass(slots=True)
class Canary:
    route: str
    sent_at: datetime
    message_id: str | None = None
    event_at: datetime | None = None


@dataclass(slots=True)
class EndedAttempt:
    job_id: str
    attempt: int
    outcome: str
    death_proof: str | None
    absence_proof: str | None


@dataclass(slots=True)
class State:
    clock: Callable[[], datetime]
    pepper: bytes = field(default_factory=lambda: os.urandom(32))
    fingerprint: str | None = None
    place: str = "memory"
    """What a recorded fingerprint is compared with."""
    claim_seq: int = 0
    halted: str | None = None
    adoptions: int = 0
    since: datetime = field(init=False)
    jobs: dict[str, JobRow] = field(default_factory=dict)
    attempts: list[EndedAttempt] = field(default_factory=list)
    letters: dict[str, Letter] = field(default_factory=dict)
    dispatches: dict[str, DispatchRow] = field(default_factory=dict)
    tenant_turns: dict[tuple[str, str], float] = field(default_factory=dict)
    tenant_weights: dict[str, int] = field(default_factory=dict)
    mailouts: dict[str, MailoutRow] = field(default_factory=dict)
    subscribers: dict[tuple[str, str], Subscriber] = field(default_factory=dict)
    sign_ups: dict[str, SignUp] = field(default_factory=dict)
    suppressions: dict[tuple[str, str], Suppression] = field(default_factory=dict)
    events: list[tuple[DeliveryEvent, str | None, datetime]] = field(default_factory=list)
    events_archived: int = 0
    unreadable: list[UnreadableEvent] = field(default_factory=list)
    workers: dict[str, tuple[WorkerRecord, str | None]] = field(default_factory=dict)
    claim_counts: dict[str, tuple[int, str]] = field(default_factory=dict)
    permits: dict[tuple[str, str], tuple[int, datetime]] = field(default_factory=dict)
    senders: dict[str, SenderIdentity] = field(default_factory=dict)
    sender_holds: dict[str, SenderHold] = field(default_factory=dict)
    canaries: dict[str, Canary] = field(default_factory=dict)
    receivers: dict[str, list[Receiver]] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    outbox: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    outbox_done: set[int] = field(default_factory=set)
    mail_cursors: dict[tuple[str, str], MailCursor] = field(default_factory=dict)
    mailbox_readings: dict[str, MailboxReading] = field(default_factory=dict)
    found_mail: dict[tuple[str, str], FoundMail] = field(default_factory=dict)
    audit: list[tuple[str, str, str]] = field(default_factory=list)
    erased: dict[str, str] = field(default_factory=dict)
    ledger_id: str = ""
    _lock: RLock = field(default_factory=RLock)

    def __post_init__(self) -> None:
        self.since = self.clock()
        self.ledger_id = self.new_id(self.since)

    @contextmanager
    def transaction(self) -> Iterator[datetime]:
        """One caller at a time; gives the store's time. Who may refuse, refuses before the first change."""
        with self._lock:
            yield self.clock()

    @staticmethod
    def new_id(now: datetime) -> str:
        return time_ordered_id(int(now.timestamp() * 1000))

    def claimable(self, row: JobRow) -> bool:
        """Whether the dispatch of a job lets its jobs be claimed."""
        return self.dispatches[row.dispatch_id].dispatch.claimable

    def jobs_of(self, dispatch_id: str) -> list[JobRow]:
        return [row for row in self.jobs.values() if row.dispatch_id == dispatch_id]

    def keep_letter(self, letter: Letter, now: datetime) -> str:
        letter_id = self.new_id(now)
        self.letters[letter_id] = letter
        return letter_id

    def suppression_of(self, tenant_id: TenantId, address_key: str) -> Suppression | None:
        """The suppression that denies this address, the global one first."""
        key = self.suppression_key(address_key)
        return self.suppressions.get((key, EVERYBODY)) or self.suppressions.get((key, tenant_id))

    def denied(self, row: JobRow) -> bool:
        """Whether the letter must not leave: what somebody asked for passes their unsubscription from
        this tenant, and from this tenant only."""
        key = self.suppression_key(row.recipient_key)
        by_tenant = self.suppressions.get((key, row.tenant_id))
        asked_for = self.dispatches[row.dispatch_id].dispatch.asked_for
        if asked_for and by_tenant and by_tenant.reason == SuppressionReason.UNSUBSCRIBED:
            by_tenant = None
        return by_tenant is not None or (key, EVERYBODY) in self.suppressions

    def suppression_key(self, address_key: str) -> str:
        """The key that denies an address, also one that was erased and is a hash now."""
        return self.erased.get(address_key) or suppression_key(address_key, self.pepper)
