"""The moves of a job in memory, shared by settling, events and operators."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sendonce.adapters.stores.memory.state import EndedAttempt, JobRow, State
from sendonce.domain.engine.dispatches import CANCELLED
from sendonce.domain.engine.evidence import acceptance, sent_by_evidence
from sendonce.domain.engine.jobs import Evidence, Move, after


def move(row: JobRow, why: Move, **changes: Any) -> int:
    """One arrow of the table in domain/engine/jobs; 0 when the job is not where the arrow begins."""
    target = after(row.state, why)
    if target is None:
        return 0
    row.state = target
    change(row, changes)
    return 1


def reschedule(state: State, row: JobRow, why: Move, now: datetime, **changes: Any) -> int:
    """An arrow that makes a job scheduled: it reopens its dispatch, or is skipped if that was cancelled."""
    if not move(row, why, **changes):
        return 0
    entry = state.dispatches[row.dispatch_id]
    if entry.dispatch.cancelled:
        return move(row, Move.SKIP, reason=CANCELLED, settled_at=now)
    entry.reopen()
    return 1


def archive(state: State, row: JobRow, outcome: str, absence_proof: str | None = None) -> None:
    state.attempts.append(EndedAttempt(row.id, row.attempt, outcome, row.death_proof, absence_proof))


def accept(row: JobRow, attempt: int, message_id: str | None, now: datetime) -> Evidence:
    """Proof that an attempt was accepted."""
    evidence, changes = acceptance(row, attempt, message_id, now)
    change(row, changes)
    return evidence


def change(row: JobRow, changes: Mapping[str, Any]) -> None:
    for name, value in changes.items():
        setattr(row, name, value)


def fall_back_on_evidence(row: JobRow, now: datetime) -> int:
    """The attempt on the wire was not accepted, but an earlier one is proven to be: the job is sent."""
    assert row.accepted_attempt is not None
    return move(row, Move.ACCEPT, **sent_by_evidence(row, row.accepted_attempt, now))
