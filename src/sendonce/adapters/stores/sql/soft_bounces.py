"""Soft bounces on SQL: the suppression follows from the events that are kept, in whatever order they came."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import (
    delivery_events,
    dispatches,
    message_jobs,
    subscribers,
    suppressions,
)
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.suppressions import suppress
from sendonce.domain.engine.events import BounceType, EventKind
from sendonce.domain.engine.evidence import TrackedJob
from sendonce.domain.people.soft_bounces import SOFT_BOUNCE_NOTE, LetterFate, last_of_a_row
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason

E, J, P, S = delivery_events.c, message_jobs.c, subscribers.c, suppressions.c

_IS_SOFT = (S.reason == SuppressionReason.BOUNCE) & (S.note == SOFT_BOUNCE_NOTE)

# Built once: that takes longer than running them.
_OUTWEIGH_EVERYWHERE = (
    suppressions.update().where(S.key == sa.bindparam("own_key"), _IS_SOFT).values(note=sa.bindparam("note"))
)
_OUTWEIGH = _OUTWEIGH_EVERYWHERE.where(S.tenant_id == sa.bindparam("scope"))


class SoftBounces:
    """``limit`` letters in a row that came back suppress their recipient; a later proof that one of them
    was delivered lifts it."""

    def __init__(self, database: Database, limit: int) -> None:
        self._db = database
        self._limit = limit

    def came_back(self, tx: Connection, job: TrackedJob, now: datetime) -> None:
        """A letter came back for a passing reason, and its event is kept."""
        self._one_at_a_time(tx, job)
        last = last_of_a_row(_letters(tx, job), self._limit)
        if last is None:
            return
        reason = SuppressionReason.BOUNCE
        suppress(tx, job.suppression_key, job.tenant_id, job.recipient, reason, SOFT_BOUNCE_NOTE, now)
        soft = P.bounce_type.is_(None) | (P.bounce_type == BounceType.TRANSIENT)
        person = subscribers.update().where(_person(job), soft)
        tx.execute(
            person.values(bounce_type=BounceType.TRANSIENT, bounce_subtype=last.subtype, updated_at=now)
        )
        tx.execute(person.where(P.status == "active").values(status="bounced", status_updated_at=now))

    def suppressed(self, tx: Connection, jobs: Collection[TrackedJob]) -> set[tuple[str, str]]:
        """Whose soft bounces a delivery may lift, of the recipients of these jobs: keys and tenants."""
        if not jobs:
            return set()
        places = [(job.suppression_key, job.tenant_id) for job in jobs]
        if self._db.is_sqlite:
            values: Any = (json.dumps(places), SOFT_BOUNCE_NOTE)
        else:
            keys, owners = map(list, zip(*places, strict=True))
            values = {"keys": keys, "tenants": owners, "note": SOFT_BOUNCE_NOTE}
        return set(self._db.driver(tx).execute(self._db.statement("soft_suppressed"), values).fetchall())

    def delivered(self, tx: Connection, job: TrackedJob, now: datetime) -> None:
        """A letter arrived, and is marked so. Whoever has unsubscribed since stays suppressed."""
        suppression = _soft_suppression(job.suppression_key, job.tenant_id)
        if tx.execute(sa.select(S.key).where(suppression)).first() is None:
            return
        self._one_at_a_time(tx, job)
        if last_of_a_row(_letters(tx, job), self._limit) is not None:
            return
        bounced = (P.status == "bounced") & (P.bounce_type == BounceType.TRANSIENT)
        still_bounced = sa.exists().where(_person(job), bounced)
        if tx.execute(suppressions.delete().where(suppression, still_bounced)).rowcount:
            back = {"status": "active", "bounce_type": None, "bounce_subtype": None}
            person = subscribers.update().where(_person(job), bounced)
            tx.execute(person.values(**back, status_updated_at=now, updated_at=now))

    def outweigh(self, tx: Connection, key: str, scope: str, note: str | None) -> None:
        """A permanent bounce is told: from now on it is the reason, and nothing lifts it."""
        if scope == EVERYBODY:
            tx.execute(_OUTWEIGH_EVERYWHERE, {"own_key": key, "note": note})
        else:
            tx.execute(_OUTWEIGH, {"own_key": key, "scope": scope, "note": note})

    def _one_at_a_time(self, tx: Connection, job: TrackedJob) -> None:
        """Two events of one person wait for each other, or each would count without the other.

        A lock of the transaction, so it passes a pooler. SQLite writes one at a time anyway.
        """
        if not self._db.is_sqlite:
            number = sa.func.hashtextextended(f"{job.tenant_id} {job.suppression_key}", 0)
            tx.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))


def _letters(tx: Connection, job: TrackedJob) -> Iterator[LetterFate]:
    """The tenant's letters to the recipient of a job, one a dispatch, so that the index of the rule
    "once a dispatch" finds them."""
    soft = (E.job_id == J.id) & (E.kind == EventKind.BOUNCE) & (E.bounce_type == BounceType.TRANSIENT)
    own = sa.select(dispatches.c.id).where(dispatches.c.tenant_id == job.tenant_id)
    query = (
        sa.select(J.id, J.delivered_at, sa.func.count(E.id), sa.func.max(E.bounce_subtype))
        .select_from(message_jobs.outerjoin(delivery_events, soft))
        .where(J.dispatch_id.in_(own), J.recipient_key == job.recipient_key)
        .group_by(J.id, J.delivered_at)
    )
    for job_id, delivered_at, bounces, subtype in tx.execute(query):
        yield LetterFate(job_id, delivered_at is not None, bounces > 0, subtype)


def _person(job: TrackedJob) -> sa.ColumnElement[bool]:
    return sa.and_(P.tenant_id == job.tenant_id, P.address_key == job.recipient_key)


def _soft_suppression(key: str, tenant_id: str) -> sa.ColumnElement[bool]:
    return (S.key == key) & (S.tenant_id == tenant_id) & _IS_SOFT
