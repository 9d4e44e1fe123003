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
from typing import Any, NamedTuple

from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.engine.senders import OWN_SENDER, SenderHold
from sendonce.domain.engine.tenants import DispatchId, TenantId


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
    SKIP = "skip"  # suppressed, cancelled or taken back before it was claimed
    ACCEPT = "accept"  # the provider's answer, or an event of this attempt
    DEFER = "defer"  # proven not accepted, or not a byte of the body left
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
    # Evidence beats what anybody believed before: a settle counts from a buried worker too, and the
    # provider's event overrules a refusal, a deferral or a cancellation of the same attempt.
    Move.ACCEPT: (frozenset(_S) - {_S.SENT}, _S.SENT),
    Move.DEFER: (frozenset({_S.SENDING, _S.IN_DOUBT}), _S.SCHEDULED),
    Move.REFUSE: (frozenset({_S.SENDING, _S.IN_DOUBT}), _S.FAILED),
    Move.EXHAUST: (frozenset({_S.SENDING, _S.IN_DOUBT}), _S.DEAD),
    Move.DOUBT: (frozenset({_S.SENDING}), _S.IN_DOUBT),
    # While a newer attempt is on the wire or sent, old evidence is proof of a second copy: an alarm.
    Move.OLD_EVIDENCE: (frozenset(_S) - {_S.SENDING, _S.SENT}, _S.SENT),
    Move.ABSENCE: (frozenset({_S.IN_DOUBT}), _S.SCHEDULED),
    Move.RETRY: (frozenset({_S.DEAD, _S.FAILED}), _S.SCHEDULED),
}


BEFORE_ALL = "00000000-0000-0000-0000-000000000000"
"""An id that comes before every other."""

ADOPTED_ATTEMPTS = 1_000_000
"""How far an adopted database moves the attempt numbers of its jobs that are open, failed or dead.

The time that the database forgot may have issued attempts: their events must find a job that knows
them as older ones, and no number may be given to a second letter.
"""

ADOPTED_CLAIMS = 1_000_000_000
"""How far an adopted database moves its claim numbers.

Machines that saw higher ones in the forgotten time must not take it for an older copy again.
"""


def after(state: JobState, move: Move) -> JobState | None:
    """The state that ``move`` leads to, or None where the move is not allowed."""
    sources, target = MOVES[move]
    return target if state in sources else None


def ended_before_adoption(state: JobState, worker_id: str | None) -> bool:
    """Whether a dead or failed job has not been claimed since the database was adopted.

    In the time that the database forgot, somebody may have retried it and the provider accepted it.
    Adoption removes the worker from such jobs, and the next claim sets one.
    """
    return worker_id is None and state in MOVES[Move.RETRY][0]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What proof that one attempt was accepted means for its job."""

    ends_the_job: bool
    second_copy: bool
    newest: bool  # no later attempt is known to be accepted, so this one's message id is shown


def weigh_evidence(state: JobState, current: int, accepted: int | None, attempt: int) -> Evidence:
    """Proof for ``attempt`` of a job at attempt ``current``; ``accepted`` is the last one proven before.

    The same proofs give the same end in whatever order they come: two attempts are a second copy, a
    second event of one attempt is not.
    """
    newer_on_the_wire = attempt < current and state == JobState.SENDING
    return Evidence(
        ends_the_job=state != JobState.SENT and not newer_on_the_wire,
        second_copy=newer_on_the_wire or accepted not in (None, attempt),
        newest=accepted is None or attempt > accepted,
    )


# A frozen dataclass takes twice the time to make, and there is one of each a letter.
class ClaimedJob(NamedTuple):
    """What a worker gets to send. ``claimed_at`` is the store's clock.

    ``letter_id`` is the job's own letter or else its dispatch's, ``thread`` a ``Thread`` as it is stored.
    """

    id: str
    dispatch_id: DispatchId
    letter_id: str | None
    attempt: int
    tries: int
    recipient: str
    fields: dict[str, str]
    claimed_at: datetime
    thread: dict[str, Any] | None = None


class Settlement(NamedTuple):
    """The outcome of one attempt, on its way into the ledger.

    For a deferral: ``retry_after`` in seconds, or ``exhausted`` when the tries are used up.
    For a doubt: ``death_proof`` says why nobody can still be sending this attempt.
    ``dispatch_id`` as the claim told it: whoever knows it saves the store a look at each job.
    """

    job_id: str
    attempt: int
    outcome: Outcome
    retry_after: float = 0.0
    exhausted: bool = False
    death_proof: str | None = None
    dispatch_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """``token`` is made by the worker, so that a claim whose COMMIT reply was lost can be found again.

    ``sender`` is the key of the sender that the jobs will leave from; it may be held. ``sender_id`` is
    its id: only its dispatches are claimed from.
    ``claims`` is how many claims the worker knows to be counted in its row, ``adoption`` how often the
    database had been adopted when it registered: see domain/claim_counts.
    ``not_after`` is the latest time that the store's clock can show unless it has jumped.
    """

    worker_id: str
    token: str
    limit: int
    claims: int = 0
    adoption: int = 0
    retry: bool = False
    sender: str = ""
    sender_id: str = OWN_SENDER
    not_after: datetime | None = None

    def jumped(self, now: datetime) -> bool:
        """Whether the store's clock has jumped ahead, so that nothing may be claimed by it."""
        return self.not_after is not None and now > self.not_after


@dataclass(frozen=True, slots=True)
class Turn:
    """What one transaction of the engine did: settlements in, claimed jobs out.

    ``hold`` is there while the sender is held; a job claimed then is a probe.
    ``claims`` is what the next claim of this worker has to name. ``now`` is the store's clock.
    """

    claimed: tuple[ClaimedJob, ...]
    claim_seq: int
    settled: int
    skipped: int
    hold: SenderHold | None = None
    claims: int = 0
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the ledger, as shown to people."""

    id: str
    tenant_id: TenantId
    dispatch_id: DispatchId
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
    rejected_at: datetime | None = None
    duplicate_at: datetime | None = None
    letter_id: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def ended_before_adoption(self) -> bool:
        return ended_before_adoption(self.state, self.worker_id)


@dataclass(frozen=True, slots=True)
class Books:
    """The balanced counts of a dispatch. The last five are marks on jobs, not states.

    ``rejected``: the provider took the letter and threw it away, as SES does when it finds a virus.
    """

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
    rejected: int = 0
    duplicates: int = 0

    @property
    def open(self) -> int:
        return self.scheduled + self.sending

    @property
    def ended(self) -> int:
        return self.planned - self.open

    @property
    def balanced(self) -> bool:
        return self.planned == (
            self.scheduled + self.sending + self.sent + self.failed + self.skipped + self.dead + self.in_doubt
        )
