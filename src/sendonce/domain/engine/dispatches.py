"""The dispatch: a run of message jobs that start, pause, cancel and end together.

A mailout owns one; any other door may have its own kind. The engine knows of letters and recipients only
through dispatches and their jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.senders import OWN_SENDER
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.errors import RefusedByRule

RESTORED = "the database was restored or copied"
"""Why a dispatch is paused that may have been sent from another copy of the database."""

CANCELLED = "cancelled"

LETTER_GONE = "letter_gone"
"""The code of a scheduled job that waits for its letter to be found again."""


DOOR = "door"
"""Who plans a dispatch that its door opened."""

PLANNED_WITHIN = timedelta(minutes=5)
"""How long a door may take from one planned group of jobs to the next: after that it is taken for dead."""


class DispatchPhase(StrEnum):
    """No job is claimed before all are planned."""

    PREPARING = "preparing"  # its letter or its recipients are not settled yet
    PLANNING = "planning"
    RUNNING = "running"
    OVER = "over"


class DispatchResult(StrEnum):
    SENT = "sent"
    FAILED = "failed"  # it ended with nothing accepted, and nothing that may have been


@dataclass(frozen=True, slots=True)
class Dispatch:
    """``owner_id`` is what the door of this ``kind`` knows it by.

    ``letter_id`` holds for jobs without their own. All jobs leave from ``sender_id``, which is empty for the
    environment's own sender: a door with several senders opens a dispatch for each.
    ``reason`` says why it is paused or cancelled.
    ``weight`` is its share beside other dispatches. The recipients of what is ``asked_for`` want this very
    letter: an unsubscription from this tenant does not keep it from them.
    """

    id: DispatchId
    tenant_id: TenantId
    kind: str
    owner_id: str
    letter_id: str | None
    sender_id: str
    phase: DispatchPhase
    result: DispatchResult | None
    paused: bool
    cancelled: bool
    reason: str | None
    is_test: bool
    asked_for: bool
    weight: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def claimable(self) -> bool:
        return self.phase == DispatchPhase.RUNNING and not self.paused and not self.cancelled

    @property
    def topic(self) -> str:
        """Under which the outbox tells its door of the end."""
        return ended_topic(self.kind)


@dataclass(frozen=True, slots=True)
class NewDispatch:
    kind: str
    owner_id: str
    letter_id: str | None = None
    sender_id: str = OWN_SENDER
    is_test: bool = False
    asked_for: bool = False
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Thread:
    """The message that a letter answers, and those before it, by their Message-IDs."""

    in_reply_to: str
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewJob:
    """A letter to one recipient. What is None is taken from the dispatch; ``due_at`` None is now.

    A ``due_at`` that a door chose stands, however far ahead. One that the engine set (now, or a retry) is
    called back when it is further ahead than any retry: the clock was wrong then.
    Among jobs that are due at the same time, those with the lower ``priority`` leave first.
    """

    recipient: Address
    fields: dict[str, str] = field(default_factory=dict)
    letter_id: str | None = None
    sender_id: str | None = None
    thread: Thread | None = None
    due_at: datetime | None = None
    priority: int = 0


def refuse_other_senders(dispatch_id: str, sender_id: str, jobs: Sequence[NewJob]) -> None:
    """Dispatches take turns by their due jobs; jobs of a held sender among them would stand in the way."""
    for job in jobs:
        if job.sender_id not in (None, sender_id):
            raise RefusedByRule(
                f"Dispatch {dispatch_id} has the sender {sender_id or 'of the environment'}, and a job was "
                f"to leave from {job.sender_id}: open a dispatch for each sender."
            )


def ended_topic(kind: str) -> str:
    return f"{kind}.ended"


def result_of(states: set[JobState], *, cancelled: bool) -> DispatchResult | None:
    """How a dispatch with jobs in these states ended; None while something is open."""
    if states & {JobState.SCHEDULED, JobState.SENDING}:
        return None
    lost = (bool(states) or cancelled) and not states & {JobState.SENT, JobState.IN_DOUBT}
    return DispatchResult.FAILED if lost else DispatchResult.SENT


# --- fair share ---------------------------------------------------------------------------------
#
# Each dispatch has a virtual time, ``served``. The one with the lowest is claimed from first, and moves on by
# 1 / weight with each group that it gives, so it is as if a dispatch of weight w had waited w times as long.
# Who wakes up after a sleep is not given the time it slept: it starts where the others are now.


def charged(served: float, weight: int) -> float:
    """The virtual time of a dispatch that gave a group."""
    return served + 1 / weight


def woken(served: float, awake: list[float], asleep: list[float]) -> float:
    """Where a dispatch starts when it wakes up: never before the others that are awake.

    Where nobody is, not before those who sleep: or else whoever comes first would be ahead of them by all
    that they were served.
    """
    now = min(awake) if awake else max(asleep, default=0.0)
    return max(served, now)
