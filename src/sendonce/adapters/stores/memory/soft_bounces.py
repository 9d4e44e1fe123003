"""Soft bounces in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from sendonce.adapters.stores.memory.people import suppress
from sendonce.adapters.stores.memory.state import JobRow, State
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.events import BounceType, EventKind
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.soft_bounces import SOFT_BOUNCE_NOTE, LetterFate, last_of_a_row
from sendonce.domain.people.subscribers import SubscriberStatus
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason


class SoftBounces:
    def __init__(self, state: State, limit: int) -> None:
        self._state = state
        self._limit = limit

    def came_back(self, job: JobRow, now: datetime) -> None:
        last = last_of_a_row(self._letters(job), self._limit)
        if last is None:
            return
        address = Address(job.recipient, job.recipient_key)
        suppress(self._state, job.tenant_id, address, SuppressionReason.BOUNCE, SOFT_BOUNCE_NOTE, now)
        person = self._state.subscribers.get((job.tenant_id, job.recipient_key))
        if person is None or person.bounce_type not in (None, BounceType.TRANSIENT):
            return
        person = replace(person, bounce_type=str(BounceType.TRANSIENT), bounce_subtype=last.subtype)
        if person.status == SubscriberStatus.ACTIVE:
            person = replace(person, status=SubscriberStatus.BOUNCED, status_updated_at=now)
        self._state.subscribers[job.tenant_id, job.recipient_key] = person

    def delivered(self, job: JobRow, now: datetime) -> None:
        person = self._state.subscribers.get((job.tenant_id, job.recipient_key))
        place = self._soft_suppression(job.tenant_id, job.recipient_key)
        if place is None or last_of_a_row(self._letters(job), self._limit) is not None:
            return
        bounced = (SubscriberStatus.BOUNCED, BounceType.TRANSIENT)
        if person is not None and (person.status, person.bounce_type) == bounced:
            del self._state.suppressions[place]
            self._state.subscribers[job.tenant_id, job.recipient_key] = replace(
                person,
                status=SubscriberStatus.ACTIVE,
                bounce_type=None,
                bounce_subtype=None,
                status_updated_at=now,
            )

    def outweigh(self, scope: TenantId, address_key: str, note: str | None) -> None:
        known = self._state.suppressions.values()
        tenants = {each.scope for each in known} if scope == EVERYBODY else {scope}
        for tenant_id in tenants:
            place = self._soft_suppression(tenant_id, address_key)
            if place is not None:
                self._state.suppressions[place] = replace(self._state.suppressions[place], note=note)

    def _soft_suppression(self, tenant_id: TenantId, address_key: str) -> tuple[str, str] | None:
        place = (suppression_key(address_key, self._state.pepper), tenant_id)
        known = self._state.suppressions.get(place)
        if known is None or (known.reason, known.note) != (SuppressionReason.BOUNCE, SOFT_BOUNCE_NOTE):
            return None
        return place

    def _letters(self, job: JobRow) -> Iterator[LetterFate]:
        person = (job.tenant_id, job.recipient_key)
        for row in self._state.jobs.values():
            if (row.tenant_id, row.recipient_key) == person:
                subtypes = self._soft_subtypes(row.id)
                subtype = max((s for s in subtypes if s is not None), default=None)
                yield LetterFate(row.id, row.delivered_at is not None, bool(subtypes), subtype)

    def _soft_subtypes(self, job_id: str) -> list[str | None]:
        return [
            event.bounce_subtype
            for event, own_id, _ in self._state.events
            if (own_id, event.kind, event.bounce_type) == (job_id, EventKind.BOUNCE, BounceType.TRANSIENT)
        ]
