"""The message job: one letter to one recipient, and the only moves it can make.

    scheduled ──claim──► sending ──► sent
       ▲  │                 ├──► scheduled   "not now", or it never left
       │  └► skipped        ├──► failed      "never"
       │                    ├──► dead        tries used up
       └───── in_doubt ◄────┘
                └──► sent (evidence) | scheduled (two proofs, or an operator's word)

Stores make these moves as conditional updates; this table is what they are tested against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sendonce.domain.outcomes import Outcome


class JobState(StrEnum):
    SCHEDULED = "scheduled"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    SKIPPED = "skipped"
    DEAD = "dead"
    IN_DOUBT = "in_doubt"


class Move(StrEnum):
    """Why a job changes its state."""

    CLAIM = "claim"
    SKIP = "skip"  # suppressed or cancelled before it was claimed
    ACCEPT = "accept"  # the provider's answer, or an event of this attempt
    DEFER = "defer"  # proven not accepted
    RELEASE = "release"  # claimed, but not a byte of the body left
    REFUSE = "refuse"
    EXHAUST = "exhaust"  # deferred once too often
    DOUBT = "doubt"
    OLD_EVIDENCE = "old_evidence"  # an event of an earlier attempt
    ABSENCE = "absence"  # death and absence are both proven
    RETRY = "retry"  # an operator gives a dead or failed job another life


_S = JobState

MOVES: dict[Move, tuple[frozenset[JobState], JobState]] = {
    Move.CLAIM: (frozenset({_S.SCHEDULED}), _S.SENDING),
    Move.SKIP: (frozenset({_S.SCHEDULED}), _S.SKIPPED),
    # A settle is evidence: it is believed from a buried worker too, and an acceptance event may
    # overtake the settle of a deferral that was never one.
    Move.ACCEPT: (frozenset({_S.SENDING, _S.IN_DOUBT, _S.SCHEDULED}), _S.SENT),
    Move.DEFER: (frozenset({_S.SENDING, _S.IN_DOUBT}), _S.SCHEDULED),
    Move.RELEASE: (frozenset({_S.SENDING}), _S.SCHEDULED),
    Move.REFUSE: (frozenset({_S.SENDING, _S.IN_DOUBT}), _S.FAILED),
    Move.EXHAUST: (frozenset({_S.SENDING, _S.IN_DOUBT}), _S.DEAD),
    Move.DOUBT: (frozenset({_S.SENDING}), _S.IN_DOUBT),
    Move.OLD_EVIDENCE: (frozenset({_S.SCHEDULED, _S.FAILED, _S.DEAD, _S.IN_DOUBT}), _S.SENT),
    Move.ABSENCE: (frozenset({_S.IN_DOUBT}), _S.SCHEDULED),
    Move.RETRY: (frozenset({_S.DEAD, _S.FAILED}), _S.SCHEDULED),
}


def after(state: JobState, move: Move) -> JobState | None:
    """The state that ``move`` leads to, or None where the move is not allowed."""
    sources, target = MOVES[move]
    return target if state in sources else None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """What a worker gets to send. ``claimed_at`` is the store's clock."""

    id: str
    mailout_id: str
    attempt: int
    tries: int
    recipient: str
    fields: dict[str, str]
    claimed_at: datetime


@dataclass(frozen=True, slots=True)
class Settlement:
    """The outcome of one attempt, on its way into the ledger.

    ``retry_at`` is set for a deferral that may be tried again; a deferral without it is dead.
    """

    job_id: str
    attempt: int
    outcome: Outcome
    retry_after: float | None = None
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the ledger, as shown to people."""

    id: str
    tenant_id: str
    mailout_id: str
    recipient: str
    state: JobState
    attempt: int
    tries: int
    due_at: datetime
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
    duplicate_at: datetime | None = None
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Books:
    """The balanced counts of a mailout. The last four are marks on jobs, not states."""

    planned: int = 0
    scheduled: int = 0
    sending: int = 0
    sent: int = 0
    failed: int = 0
    skipped: int = 0
    dead: int = 0
    in_doubt: int = 0
    delivered: int = 0
    bounced: int = 0
    complained: int = 0
    duplicates: int = 0

    @property
    def open(self) -> int:
        return self.scheduled + self.sending

    @property
    def balanced(self) -> bool:
        return self.planned == (
            self.scheduled + self.sending + self.sent + self.failed + self.skipped + self.dead + self.in_doubt
        )
