"""The moves of a job in memory, shared by settling, events and operators."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from sendonce.adapters.stores.memory.state import EndedAttempt, JobRow, State
from sendonce.domain.engine.jobs import Evidence, JobState, Move, after, weigh_evidence
from sendonce.domain.mailouts.mailouts import MailoutStatus, Phase


def move(row: JobRow, why: Move, **changes: Any) -> int:
    """One arrow of the table in domain/engine/jobs; 0 when the job is not where the arrow begins."""
    target = after(row.state, why)
    if target is None:
        return 0
    row.state = target
    for name, value in changes.items():
        setattr(row, name, value)
    return 1


def reschedule(state: State, row: JobRow, why: Move, now: datetime, **changes: Any) -> int:
    """An arrow that makes a job scheduled: it reopens the mailout, or is skipped if that was cancelled."""
    if not move(row, why, **changes):
        return 0
    entry = state.mailouts[row.mailout_id]
    if entry.mailout.cancelled:
        return move(row, Move.SKIP, reason="cancelled", settled_at=now)
    if entry.mailout.status in (MailoutStatus.SENT, MailoutStatus.FAILED):
        entry.mailout = replace(
            entry.mailout, status=MailoutStatus.SENDING, phase=Phase.RUNNING, sent_at=None
        )
    return 1


def archive(state: State, row: JobRow, outcome: str, absence_proof: str | None = None) -> None:
    state.attempts.append(EndedAttempt(row.id, row.attempt, outcome, row.death_proof, absence_proof))


def accept(row: JobRow, attempt: int, message_id: str | None, now: datetime) -> Evidence:
    """Proof that an attempt was accepted."""
    evidence = weigh_evidence(row.state, row.attempt, row.accepted_attempt, attempt)
    if evidence.second_copy:
        row.duplicate_at = row.duplicate_at or now
    if evidence.newest:
        row.accepted_attempt, row.message_id = attempt, message_id
    elif attempt == row.accepted_attempt:
        row.message_id = row.message_id or message_id
    if evidence.ends_the_job:
        row.settled_at = now
        row.state = JobState.SENT
    if row.state == JobState.SENT:
        show_accepted(row)
    return evidence


def show_accepted(row: JobRow) -> None:
    row.code = None
    row.reason = None if row.accepted_attempt == row.attempt else "evidence of an earlier attempt"


def fall_back_on_evidence(row: JobRow, now: datetime) -> int:
    """The attempt on the wire was not accepted, but an earlier one is proven to be: the job is sent."""
    moved = move(row, Move.ACCEPT, settled_at=now)
    show_accepted(row)
    return moved
