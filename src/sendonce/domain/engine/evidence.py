"""What an event means for its job. Stores ask here, then write what changes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sendonce.domain.engine.events import MARKS, DeliveryEvent, EventVerdict
from sendonce.domain.engine.jobs import Evidence, JobState, weigh_evidence
from sendonce.domain.engine.tenants import TenantId


class ProvableJob(Protocol):
    """A job as far as evidence can change it."""

    @property
    def state(self) -> JobState: ...
    @property
    def attempt(self) -> int: ...
    @property
    def accepted_attempt(self) -> int | None: ...
    @property
    def message_id(self) -> str | None: ...
    @property
    def settled_at(self) -> datetime | None: ...
    @property
    def duplicate_at(self) -> datetime | None: ...


class TrackedJob(NamedTuple):
    """The part of a job's row that recording an event reads or changes."""

    id: str
    tenant_id: TenantId
    recipient: str
    recipient_key: str
    suppression_key: str
    dispatch_id: str
    attempt: int
    state: JobState
    accepted_attempt: int | None
    message_id: str | None
    code: str | None
    reason: str | None
    settled_at: datetime | None
    duplicate_at: datetime | None
    send_event_at: datetime | None
    delivered_at: datetime | None
    bounced_at: datetime | None
    complained_at: datetime | None
    rejected_at: datetime | None


def judge(event: DeliveryEvent, job: ProvableJob | None) -> EventVerdict:
    """The verdict on an event that is not a copy. ``job`` is the one that it names, if we know it."""
    if job is None or event.attempt is None:
        return EventVerdict.APPLIED if event.canary else EventVerdict.UNKNOWN
    if not 1 <= event.attempt <= job.attempt:
        return EventVerdict.QUARANTINED
    evidence = weigh_evidence(job.state, job.attempt, job.accepted_attempt, event.attempt)
    return EventVerdict.DUPLICATE_SEND if evidence.second_copy else EventVerdict.APPLIED


def changes_by_event(event: DeliveryEvent, job: ProvableJob, now: datetime) -> dict[str, Any]:
    """What changes in the job. Every event, a Reject too, proves that the provider had taken its attempt."""
    assert event.attempt is not None
    _, changes = acceptance(job, event.attempt, event.message_id, now)
    mark = MARKS.get(event.kind)
    if mark is not None:
        known: datetime | None = getattr(job, mark)
        changes[mark] = min(known or event.occurred_at, event.occurred_at)
    return changes


def acceptance(
    job: ProvableJob, attempt: int, message_id: str | None, now: datetime
) -> tuple[Evidence, dict[str, Any]]:
    """Proof that an attempt was accepted, and what it changes: it ends the job, or shows a second copy."""
    evidence = weigh_evidence(job.state, job.attempt, job.accepted_attempt, attempt)
    changes: dict[str, Any] = {}
    if evidence.second_copy:
        changes["duplicate_at"] = job.duplicate_at or now
    if evidence.newest:
        changes |= {"accepted_attempt": attempt, "message_id": message_id}
    elif attempt == job.accepted_attempt:
        changes["message_id"] = job.message_id or message_id
    if evidence.ends_the_job or (job.state == JobState.SENT and evidence.newest):
        changes |= sent_by_evidence(job, attempt, now)
    return evidence, changes


def sent_by_evidence(job: ProvableJob, attempt: int, now: datetime) -> dict[str, Any]:
    return {
        "state": JobState.SENT,
        "settled_at": job.settled_at if job.state == JobState.SENT else now,
        "code": None,
        "reason": None if attempt == job.attempt else "evidence of an earlier attempt",
    }


def never_issued(event: DeliveryEvent) -> str:
    """Why the ledger is halted by an event that names an attempt from the future."""
    return (
        f"The provider tells of attempt {event.attempt} of job {event.job_id}, which this database never "
        "issued: it was restored from an older copy. Run 'sendonce db adopt'."
    )
