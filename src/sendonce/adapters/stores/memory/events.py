"""Delivery events in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sendonce.adapters.stores.memory.arrows import accept
from sendonce.adapters.stores.memory.people import lower_status, suppress
from sendonce.adapters.stores.memory.soft_bounces import SoftBounces
from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.events import (
    MARKS,
    MOST_UNREADABLE,
    BounceType,
    DeliveryEvent,
    EventKind,
    EventVerdict,
    UnreadableEvent,
)
from sendonce.domain.engine.jobs import weigh_evidence
from sendonce.domain.people.privacy import is_erased
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason


class MemoryEvents:
    def __init__(self, state: State, soft_bounce_limit: int) -> None:
        self._state = state
        self._soft_bounces = SoftBounces(state, soft_bounce_limit)

    def record(self, event: DeliveryEvent) -> EventVerdict:
        with self._state.transaction() as now:
            if self._seen(event):
                return EventVerdict.DUPLICATE_EVENT
            row = self._state.jobs.get(event.job_id or "") if event.attempt is not None else None
            verdict = _judge(event, row)
            if row is not None and is_erased(row.recipient):
                event = replace(event, recipients=(row.recipient,), destinations=(), raw={}, reason=None)
            self._state.events.append((event, row.id if row else None, now))
            self._return_canary(event, now)
            if verdict == EventVerdict.QUARANTINED:
                self._halt(event)
            elif row is not None:
                _apply_to_job(event, row, now)
            self._apply_to_people(event, row, now)
            if row is not None and not is_erased(row.recipient):
                self._count_soft_bounces(event, row, now)
            return verdict

    def _seen(self, event: DeliveryEvent) -> bool:
        return any(
            event.event_id == known.event_id or event.natural_key == known.natural_key
            for known, _, _ in self._state.events
        )

    def _return_canary(self, event: DeliveryEvent, now: datetime) -> None:
        canary = self._state.canaries.get(event.canary or "")
        if canary is not None and event.kind == EventKind.SENT:
            canary.event_at = canary.event_at or now

    def _halt(self, event: DeliveryEvent) -> None:
        self._state.halted = self._state.halted or (
            f"The provider tells of attempt {event.attempt} of job {event.job_id}, which was never issued."
        )

    def _apply_to_people(self, event: DeliveryEvent, row: JobRow | None, now: datetime) -> None:
        """A permanent bounce and a complaint end the writing, also for a letter that nobody knows."""
        bounce = None
        if event.kind == EventKind.BOUNCE and event.bounce_type == BounceType.PERMANENT:
            reason, status = SuppressionReason.BOUNCE, SubscriberStatus.BOUNCED
            bounce = (str(event.bounce_type), event.bounce_subtype)
        elif event.kind == EventKind.COMPLAINT:
            reason, status = SuppressionReason.COMPLAINT, SubscriberStatus.UNSUBSCRIBED
        else:
            return
        if row is not None and is_erased(row.recipient):
            return
        scope = row.tenant_id if row else EVERYBODY
        note = event.reason or event.bounce_subtype
        for address in _addresses(event, row):
            if bounce:
                self._soft_bounces.outweigh(scope, address.key, note)
            suppress(self._state, scope, address, reason, note, now)
            lower_status(self._state, scope, address.key, status, now, bounce)

    def _count_soft_bounces(self, event: DeliveryEvent, row: JobRow, now: datetime) -> None:
        if event.kind == EventKind.DELIVERED:
            self._soft_bounces.delivered(row, now)
        elif event.kind == EventKind.BOUNCE and event.bounce_type == BounceType.TRANSIENT:
            self._soft_bounces.came_back(row, now)

    def keep_unreadable(self, event: UnreadableEvent) -> bool:
        with self._state.transaction() as now:
            kept = self._state.unreadable
            if any(event.event_id == each.event_id for each in kept):
                return False
            kept.append(replace(event, received_at=now))
            del kept[:-MOST_UNREADABLE]
            return True

    def unreadable(self, limit: int = 100) -> Sequence[UnreadableEvent]:
        with self._state.transaction():
            return self._state.unreadable[::-1][:limit]

    def count_unreadable(self) -> int:
        with self._state.transaction():
            return len(self._state.unreadable)

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[DeliveryEvent]:
        with self._state.transaction():
            newest_first = reversed(self._state.events)
            # Of the names of a letter only the first recipient is kept, and a job id that is known here.
            kept = [
                replace(event, job_id=own_id, recipients=event.recipients[:1], destinations=(), canary=None)
                for event, own_id, _ in newest_first
                if job_id in (None, own_id)
            ]
            return kept[:limit]


def _judge(event: DeliveryEvent, row: JobRow | None) -> EventVerdict:
    if row is None or event.attempt is None:
        return EventVerdict.APPLIED if event.canary else EventVerdict.UNKNOWN
    if not 1 <= event.attempt <= row.attempt:
        return EventVerdict.QUARANTINED
    evidence = weigh_evidence(row.state, row.attempt, row.accepted_attempt, event.attempt)
    return EventVerdict.DUPLICATE_SEND if evidence.second_copy else EventVerdict.APPLIED


def _apply_to_job(event: DeliveryEvent, row: JobRow, now: datetime) -> None:
    # Every event, a Reject too, is proof that the provider had taken this attempt.
    assert event.attempt is not None
    accept(row, event.attempt, event.message_id, now)
    if mark := MARKS.get(event.kind):
        known: datetime | None = getattr(row, mark)
        setattr(row, mark, min(known or event.occurred_at, event.occurred_at))


def _addresses(event: DeliveryEvent, row: JobRow | None) -> list[Address]:
    return [Address(row.recipient, row.recipient_key)] if row is not None else event.addressees()
