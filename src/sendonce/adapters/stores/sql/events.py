"""Delivery events on SQL: the event's row and its effect share a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import canaries, delivery_events, ledger, message_jobs, unreadable_events
from sendonce.adapters.stores.sql.arrows import accept, lock_job
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import hold_pepper, pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.adapters.stores.sql.soft_bounces import SoftBounces
from sendonce.adapters.stores.sql.suppressions import mark_subscriber, suppress
from sendonce.domain.engine.events import (
    MARKS,
    MOST_UNREADABLE,
    BounceType,
    DeliveryEvent,
    EventKind,
    EventVerdict,
    UnreadableEvent,
)
from sendonce.domain.engine.jobs import JobState, weigh_evidence
from sendonce.domain.people.privacy import erased_name, is_erased
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason

E = delivery_events.c
J = message_jobs.c
U = unreadable_events.c


class SqlEvents:
    def __init__(self, database: Database, soft_bounce_limit: int) -> None:
        self._db = database
        self._soft_bounces = SoftBounces(database, soft_bounce_limit)

    def record(self, event: DeliveryEvent) -> EventVerdict:
        with self._db.writing() as tx:
            hold_pepper(self._db, tx)
            now = self._db.now(tx)
            row = self._job_of(tx, event)
            verdict = _judge(event, row)
            if not self._keep(tx, event, verdict, row, now):
                return EventVerdict.DUPLICATE_EVENT
            if event.canary and event.kind == EventKind.SENT:
                returned = canaries.update().where(
                    canaries.c.id == event.canary, canaries.c.event_at.is_(None)
                )
                tx.execute(returned.values(event_at=now))
            if verdict == EventVerdict.QUARANTINED:
                self._halt(tx, event)
            elif row is not None and event.attempt is not None:
                self._apply_to_job(tx, event, row, now)
            self._apply_to_people(tx, event, row, now)
            if row is not None and not is_erased(row.recipient):
                self._count_soft_bounces(tx, event, row, now)
            return verdict

    def _job_of(self, tx: Connection, event: DeliveryEvent) -> Row[Any] | None:
        """The job, locked; None for a letter that is not ours or carries no readable job id."""
        if event.job_id is None or event.attempt is None or not _is_uuid(event.job_id):
            return None
        return lock_job(tx, event.job_id)

    def _keep(
        self, tx: Connection, event: DeliveryEvent, verdict: EventVerdict, row: Row[Any] | None, now: datetime
    ) -> bool:
        """Store the event word for word; False if it is here already, under its id or its natural key."""
        values = {
            "id": new_id(now),
            "event_id": event.event_id,
            "natural_key": event.natural_key,
            "kind": event.kind,
            "verdict": verdict,
            "job_id": row.id if row is not None else None,
            "attempt": event.attempt,
            "message_id": event.message_id,
            "recipient": event.recipients[0] if event.recipients else None,
            "bounce_type": event.bounce_type,
            "bounce_subtype": event.bounce_subtype,
            "code": event.code,
            "reason": event.reason,
            "occurred_at": event.occurred_at,
            "received_at": now,
            "raw": event.raw,
        }
        if row is not None and is_erased(row.recipient):
            natural_key = erased_name(event.natural_key, pepper_in_force(self._db, tx))
            values |= {"recipient": row.recipient, "raw": {}, "reason": None, "natural_key": natural_key}
        # SQLAlchemy does not tell the row count of an INSERT on every driver; what came back is sure.
        insert = insert_for(self._db)(delivery_events).values(**values).on_conflict_do_nothing()
        return tx.execute(insert.returning(E.id)).first() is not None

    def _halt(self, tx: Connection, event: DeliveryEvent) -> None:
        reason = (
            f"The provider tells of attempt {event.attempt} of job {event.job_id}, which this database never "
            "issued: it was restored from an older copy. Run 'sendonce db adopt'."
        )
        tx.execute(ledger.update().where(ledger.c.halted.is_(None)).values(halted=reason))

    def _apply_to_job(self, tx: Connection, event: DeliveryEvent, row: Row[Any], now: datetime) -> None:
        # Every event, a Reject too, is proof that the provider had taken this attempt.
        assert event.attempt is not None
        mark = MARKS.get(event.kind)
        earliest = {mark: _earliest(getattr(row, mark), event.occurred_at)} if mark else {}
        accept(tx, row, event.attempt, event.message_id, now, earliest)

    def _apply_to_people(
        self, tx: Connection, event: DeliveryEvent, row: Row[Any] | None, now: datetime
    ) -> None:
        """A permanent bounce and a complaint end the writing, also for a letter we do not know. Nobody can
        tell which tenant sent that one, so then it holds for all of them."""
        if event.kind == EventKind.BOUNCE and event.bounce_type == BounceType.PERMANENT:
            reason, status = SuppressionReason.BOUNCE, "bounced"
            bounce = (str(event.bounce_type), event.bounce_subtype)
        elif event.kind == EventKind.COMPLAINT:
            reason, status, bounce = SuppressionReason.COMPLAINT, "unsubscribed", None
        else:
            return
        note = event.reason or event.bounce_subtype
        if row is not None and is_erased(row.recipient):
            return  # suppressed for good, and the note could name the person again
        if row is not None:
            if bounce:
                self._soft_bounces.outweigh(tx, row.suppression_key, row.tenant_id, note)
            suppress(tx, row.suppression_key, row.tenant_id, row.recipient, reason, note, now)
            mark_subscriber(tx, row.tenant_id, row.recipient_key, status, now, bounce)
            return
        for address in event.addressees():
            key = suppression_key(address.key, pepper_in_force(self._db, tx))
            if bounce:
                self._soft_bounces.outweigh(tx, key, EVERYBODY, note)
            suppress(tx, key, EVERYBODY, address.text, reason, note, now)
            mark_subscriber(tx, EVERYBODY, address.key, status, now, bounce)

    def _count_soft_bounces(self, tx: Connection, event: DeliveryEvent, row: Row[Any], now: datetime) -> None:
        if event.kind == EventKind.DELIVERED:
            self._soft_bounces.delivered(tx, row, now)
        elif event.kind == EventKind.BOUNCE and event.bounce_type == BounceType.TRANSIENT:
            self._soft_bounces.came_back(tx, row, now)

    def keep_unreadable(self, event: UnreadableEvent) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            told = {"event_id": event.event_id, "source": event.source, "why": event.why, "raw": event.raw}
            insert = insert_for(self._db)(unreadable_events).values(id=new_id(now), received_at=now, **told)
            if tx.execute(insert.on_conflict_do_nothing().returning(U.id)).first() is None:
                return False
            newest = sa.select(U.id).order_by(U.received_at.desc(), U.id.desc()).limit(MOST_UNREADABLE)
            tx.execute(unreadable_events.delete().where(U.id.not_in(newest)))
            return True

    def unreadable(self, limit: int = 100) -> Sequence[UnreadableEvent]:
        query = sa.select(U.event_id, U.source, U.why, U.raw, U.received_at)
        newest = query.order_by(U.received_at.desc(), U.id.desc()).limit(limit)
        with self._db.reading() as tx:
            return [UnreadableEvent(*row) for row in tx.execute(newest)]

    def count_unreadable(self) -> int:
        with self._db.reading() as tx:
            return tx.execute(sa.select(sa.func.count()).select_from(unreadable_events)).scalar_one()

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[DeliveryEvent]:
        query = sa.select(delivery_events).order_by(E.received_at.desc(), E.id.desc()).limit(limit)
        if job_id:
            query = query.where(E.job_id == job_id)
        with self._db.reading() as tx:
            return [as_event(row) for row in tx.execute(query)]


def _judge(event: DeliveryEvent, row: Row[Any] | None) -> EventVerdict:
    if row is None or event.attempt is None:
        return EventVerdict.APPLIED if event.canary else EventVerdict.UNKNOWN
    if event.attempt < 1 or event.attempt > row.attempt:
        return EventVerdict.QUARANTINED
    evidence = weigh_evidence(JobState(row.state), row.attempt, row.accepted_attempt, event.attempt)
    return EventVerdict.DUPLICATE_SEND if evidence.second_copy else EventVerdict.APPLIED


def _earliest(known: datetime | None, told: datetime) -> datetime:
    return told if known is None else min(known, told)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def as_event(row: Row[Any]) -> DeliveryEvent:
    return DeliveryEvent(
        event_id=row.event_id,
        natural_key=row.natural_key,
        kind=EventKind(row.kind),
        occurred_at=row.occurred_at,
        message_id=row.message_id,
        job_id=row.job_id,
        attempt=row.attempt,
        recipients=(row.recipient,) if row.recipient else (),
        bounce_type=BounceType(row.bounce_type) if row.bounce_type else None,
        bounce_subtype=row.bounce_subtype,
        code=row.code,
        reason=row.reason,
        raw=row.raw,
    )
