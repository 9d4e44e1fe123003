"""Subscribers and suppressions in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.people_columns import STATUSES, Denial, PeopleColumns, denied_counts
from sendonce.domain.people.privacy import is_erased
from sendonce.domain.people.subscribers import (
    Addition,
    ImportCounts,
    NewSubscriber,
    Subscriber,
    SubscriberStatus,
    addition_of,
)
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import (
    BY_LETTER,
    EVERYBODY,
    GRAVITY,
    RECIPIENT,
    NewSuppression,
    Suppression,
    SuppressionReason,
    may_undo,
)


class MemorySubscribers:
    import_lanes = 1

    def __init__(self, state: State) -> None:
        self._state = state

    def upsert(self, tenant_id: TenantId, people: Sequence[NewSubscriber]) -> ImportCounts:
        unique = {person.address.key: person for person in people}
        with self._state.transaction() as now:
            counts = ImportCounts(unchanged=len(people) - len(unique))
            for person in unique.values():
                counts += self._upsert_one(tenant_id, person, now)
            return counts

    def import_people(
        self, tenant_id: TenantId, people: PeopleColumns, *, source: str | None = None, dry_run: bool = False
    ) -> ImportCounts:
        columns = zip(people.emails, people.keys, people.names, people.attributes, strict=True)
        rows = [
            NewSubscriber(Address(text, key), name, json.loads(values)) for text, key, name, values in columns
        ]
        with self._state.transaction() as now:
            before = dict(self._state.subscribers), dict(self._state.suppressions)
            for key, (email, reason) in people.denials.items():
                suppress(self._state, tenant_id, Address(email, key), reason, source, now)
            counts = ImportCounts()
            for row in rows:
                counts += self._import_one(tenant_id, row, people.denials.get(row.address.key), now)
            for key in people.denials.keys() - set(people.keys):
                deactivated = self._deny(tenant_id, key, people.denials[key], now)
                counts += ImportCounts(deactivated=deactivated)
            self._note_consents(tenant_id, people.consents)
            if dry_run:
                self._state.subscribers, self._state.suppressions = before
            return counts + denied_counts(people.denials)

    def add(self, tenant_id: TenantId, person: NewSubscriber, actor: str) -> Addition:
        with self._state.transaction() as now:
            place = (tenant_id, person.address.key)
            known = self._state.subscribers.get(place)
            addition = addition_of(
                known.status if known else None,
                suppressed=self._state.suppression_of(tenant_id, person.address.key) is not None,
                consent=bool(person.consent),
            )
            if addition.refused:
                return addition
            if known is None:
                self._upsert_one(tenant_id, person, now)
                known = self._state.subscribers[place]
            noted = replace(known, name=person.name or known.name, consent=person.consent or known.consent)
            if addition == Addition.BACK:
                active = SubscriberStatus.ACTIVE
                noted = replace(
                    noted, status=active, status_updated_at=now, bounce_type=None, bounce_subtype=None
                )
            self._state.subscribers[place] = noted
            self._state.audit.append((actor, "add subscriber", person.address.text))
            return addition

    def _import_one(
        self, tenant_id: TenantId, person: NewSubscriber, denial: Denial | None, now: datetime
    ) -> ImportCounts:
        before = self._state.subscribers.get((tenant_id, person.address.key))
        counts = self._upsert_one(tenant_id, person, now)
        if denial is None or before is None:
            return counts
        deactivated = self._deny(tenant_id, person.address.key, denial, now)
        changed = self._state.subscribers[tenant_id, person.address.key] != before
        return ImportCounts(updated=changed, unchanged=not changed, deactivated=deactivated)

    def _deny(self, tenant_id: TenantId, key: str, denial: Denial, now: datetime) -> bool:
        """Whether somebody was active until now."""
        known = self._state.subscribers.get((tenant_id, key))
        lower_status(self._state, tenant_id, key, STATUSES[denial.reason], now)
        return known is not None and known.status == SubscriberStatus.ACTIVE

    def _note_consents(self, tenant_id: TenantId, consents: Mapping[str, str]) -> None:
        for key, note in consents.items():
            person = self._state.subscribers[tenant_id, key]
            self._state.subscribers[tenant_id, key] = replace(person, consent=person.consent or note)

    def _upsert_one(self, tenant_id: TenantId, person: NewSubscriber, now: datetime) -> ImportCounts:
        place = (tenant_id, person.address.key)
        known = self._state.subscribers.get(place)
        if known is None:
            self._state.subscribers[place] = Subscriber(
                id=self._state.new_id(now),
                tenant_id=tenant_id,
                email=person.address.text,
                name=person.name,
                attributes=dict(person.attributes),
                status=self._first_status(tenant_id, person.address.key),
                bounce_type=None,
                bounce_subtype=None,
                status_updated_at=None,
                created_at=now,
            )
            return ImportCounts(inserted=1)
        fresh = replace(known, name=person.name or known.name, attributes=dict(person.attributes))
        self._state.subscribers[place] = fresh
        return ImportCounts(unchanged=1) if fresh == known else ImportCounts(updated=1)

    def _first_status(self, tenant_id: TenantId, address_key: str) -> SubscriberStatus:
        """The suppressed come in as bounced or unsubscribed, never as active."""
        key = suppression_key(address_key, self._state.pepper)
        found = [self._state.suppressions.get((key, scope)) for scope in (tenant_id, EVERYBODY)]
        reasons = {suppression.reason for suppression in found if suppression}
        if not reasons:
            return SubscriberStatus.ACTIVE
        only_bounces = reasons == {SuppressionReason.BOUNCE}
        return SubscriberStatus.BOUNCED if only_bounces else SubscriberStatus.UNSUBSCRIBED

    def all(
        self,
        tenant_id: TenantId,
        *,
        status: SubscriberStatus | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> Sequence[Subscriber]:
        with self._state.transaction():
            people = sorted(
                (key, person)
                for (tenant, key), person in self._state.subscribers.items()
                if tenant == tenant_id and key > after and status in (None, person.status)
            )
            return [person for _, person in people[:limit]]

    def find(self, tenant_id: TenantId, address: Address) -> Subscriber | None:
        with self._state.transaction():
            return self._state.subscribers.get((tenant_id, address.key))

    def count(self, tenant_id: TenantId) -> dict[str, int]:
        with self._state.transaction():
            statuses = [str(p.status) for (t, _), p in self._state.subscribers.items() if t == tenant_id]
            return {status: statuses.count(status) for status in set(statuses)}

    def attribute_names(self, tenant_id: TenantId) -> Sequence[str]:
        with self._state.transaction():
            people = [p for (t, _), p in self._state.subscribers.items() if t == tenant_id]
            return sorted({name for person in people for name in person.attributes})

    def count_lacking(self, tenant_id: TenantId, variable: str) -> int:
        with self._state.transaction():
            people = [p for (t, _), p in self._state.subscribers.items() if t == tenant_id]
            active = [p for p in people if p.status == SubscriberStatus.ACTIVE]
            return sum(not (p.name if variable == "name" else p.attributes.get(variable)) for p in active)


class MemoryOutbox:
    def __init__(self, state: State) -> None:
        self._state = state

    def due(self, topic: str, limit: int) -> Sequence[tuple[str, dict[str, Any]]]:
        with self._state.transaction():
            entries = enumerate(self._state.outbox)
            waiting = [
                (n, body) for n, (t, body) in entries if t == topic and n not in self._state.outbox_done
            ]
            return [(str(n), body) for n, body in waiting[:limit]]

    def done(self, entry_id: str) -> None:
        with self._state.transaction():
            self._state.outbox_done.add(int(entry_id))

    def put(self, topic: str, body: dict[str, Any]) -> None:
        with self._state.transaction():
            self._state.outbox.append((topic, body))


class MemoryAssets:
    def __init__(self) -> None:
        self._assets: dict[str, tuple[str, bytes]] = {}

    def put(self, sha256: str, content_type: str, content: bytes) -> None:
        self._assets.setdefault(sha256, (content_type, content))

    def get(self, sha256: str) -> tuple[str, bytes] | None:
        return self._assets.get(sha256)


class MemorySuppressions:
    def __init__(self, state: State) -> None:
        self._state = state

    def add(
        self, scope: TenantId, address: Address, reason: SuppressionReason, note: str | None = None
    ) -> bool:
        with self._state.transaction() as now:
            return suppress(self._state, scope, address, reason, note, now)

    def add_all(self, given: Sequence[NewSuppression]) -> int:
        with self._state.transaction():
            return sum(self.add(each.scope, each.address, each.reason, each.note) for each in given)

    def remove(self, scope: TenantId, address: Address, actor: str) -> bool:
        with self._state.transaction():
            key = suppression_key(address.key, self._state.pepper)
            removed = self._state.suppressions.pop((key, scope), None)
            if removed is None:
                return False
            self._state.audit.append((actor, "unsuppress", address.text))
            return True

    def covers(self, tenant_id: TenantId, address: Address) -> Suppression | None:
        with self._state.transaction():
            return self._state.suppression_of(tenant_id, address.key)

    def all(self, *, after: tuple[str, str] = ("", ""), limit: int = 1000) -> Sequence[Suppression]:
        with self._state.transaction():
            places = sorted(place for place in self._state.suppressions if place > after)
            return [self._state.suppressions[place] for place in places[:limit]]

    def unsubscribe(self, job_id: str) -> str | None:
        with self._state.transaction() as now:
            job = self._state.jobs.get(job_id)
            if job is None:
                return None
            address = Address(job.recipient, job.recipient_key)
            reason = SuppressionReason.UNSUBSCRIBED
            suppress(self._state, job.tenant_id, address, reason, BY_LETTER + job_id, now, job_id)
            lower_status(self._state, job.tenant_id, job.recipient_key, SubscriberStatus.UNSUBSCRIBED, now)
            return job.recipient

    def undoable(self, job_id: str) -> bool:
        with self._state.transaction() as now:
            return self._place_to_undo(job_id, now) is not None

    def resubscribe(self, job_id: str) -> str | None:
        with self._state.transaction() as now:
            job = self._state.jobs.get(job_id)
            if job is None:
                return None
            place = self._place_to_undo(job_id, now)
            if place is not None:
                del self._state.suppressions[place]
                self._reactivate(job.tenant_id, job.recipient_key, now)
                self._state.audit.append((RECIPIENT, "undo unsubscription", job.recipient))
            return job.recipient

    def _place_to_undo(self, job_id: str, now: datetime) -> tuple[str, str] | None:
        job = self._state.jobs.get(job_id)
        if job is None:
            return None
        place = (self._state.suppression_key(job.recipient_key), job.tenant_id)
        known = self._state.suppressions.get(place)
        return place if known is not None and may_undo(known, job_id, now) else None

    def _reactivate(self, tenant_id: TenantId, address_key: str, now: datetime) -> None:
        person = self._state.subscribers.get((tenant_id, address_key))
        if person and person.status == SubscriberStatus.UNSUBSCRIBED and person.bounce_type is None:
            back = replace(person, status=SubscriberStatus.ACTIVE, status_updated_at=now)
            self._state.subscribers[tenant_id, address_key] = back


def suppress(
    state: State,
    scope: TenantId,
    address: Address,
    reason: SuppressionReason,
    note: str | None,
    now: datetime,
    job_id: str | None = None,
) -> bool:
    """Add a suppression; a graver reason replaces a lighter one. Only what one letter said can be undone."""
    place = (state.suppression_key(address.key), scope)
    known = state.suppressions.get(place)
    if known is None:
        text = None if is_erased(address.text) else address.text
        state.suppressions[place] = Suppression(place[0], scope, text, reason, note, now, job_id)
        return True
    if GRAVITY[known.reason] < GRAVITY[reason]:
        known = replace(known, reason=reason, note=note)
    state.suppressions[place] = known if job_id is not None else replace(known, job_id=None)
    return False


def lower_status(
    state: State,
    scope: TenantId,
    address_key: str,
    status: SubscriberStatus,
    now: datetime,
    bounce: tuple[str, str | None] | None = None,
) -> None:
    """pending or active → bounced → unsubscribed, never back up."""
    ladder = list(SubscriberStatus)
    tenants = {tenant_id for tenant_id, _ in state.subscribers} if scope == EVERYBODY else {scope}
    for tenant_id in tenants:
        person = state.subscribers.get((tenant_id, address_key))
        if person is None:
            continue
        if bounce is not None:
            person = replace(person, bounce_type=bounce[0], bounce_subtype=bounce[1])
        if ladder.index(person.status) < ladder.index(status):
            person = replace(person, status=status, status_updated_at=now)
        state.subscribers[tenant_id, address_key] = person
