"""Planning on SQL: one job per recipient, a chunk per transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import dispatches, mailouts, subscribers, suppressions
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.dispatches import PlannedJob, insert_jobs, make_room
from sendonce.adapters.stores.sql.exclusions import excluded_by, forget_excluded, gather_excluded
from sendonce.adapters.stores.sql.peppers import hold_pepper, pepper_in_force
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.engine.letters import NAMELESS
from sendonce.domain.mailouts.exclusions import got_already
from sendonce.domain.mailouts.mailouts import PlanProgress
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import EVERYBODY

D = dispatches.c
M = mailouts.c
S = subscribers.c
# Planning touches nothing outside, so its lease may expire by age: a second planner would only meet
# rows that are already there.
PLANNER_LEASE = timedelta(seconds=30)


class SqlPlanning:
    def __init__(self, database: Database) -> None:
        self._db = database

    def plan_chunk(self, mailout_id: str, planner: str, size: int) -> PlanProgress | None:
        with self._db.writing() as tx:
            hold_pepper(self._db, tx)
            now = self._db.now(tx)
            dispatch = self._take_planner_lease(tx, mailout_id, planner, now)
            if dispatch is None:
                return None
            mailout = tx.execute(sa.select(mailouts).where(M.id == mailout_id)).one()
            if mailout.except_cursor is not None:
                cursor = gather_excluded(self._db, tx, mailout, size)
                tx.execute(mailouts.update().where(M.id == mailout_id).values(except_cursor=cursor))
                return PlanProgress(0, False)
            people = [] if dispatch.cancelled else self._next_people(tx, mailout, size)
            added = self._insert_jobs(tx, dispatch, people, now)
            finished = len(people) < size or mailout.audience is not None
            if finished and mailout.except_of:
                finished = forget_excluded(tx, mailout_id, size)
            if people:
                make_room(tx, dispatch, now, now)
                advanced = {"plan_cursor": people[-1].address_key, "updated_at": now}
                tx.execute(mailouts.update().where(M.id == mailout_id).values(**advanced))
            if finished:
                ready = dispatches.update().where(D.id == mailout_id)
                tx.execute(ready.values(phase="running", updated_at=now))
            return PlanProgress(added, finished)

    def _take_planner_lease(
        self, tx: Connection, dispatch_id: str, planner: str, now: datetime
    ) -> Row[Any] | None:
        """The dispatch, if it is being planned and nobody else holds the lease."""
        free = sa.or_(D.planner.is_(None), D.planner == planner, D.planner_until < now)
        update = (
            dispatches.update()
            .where(D.id == dispatch_id, D.phase == "planning", free)
            .values(planner=planner, planner_until=now + PLANNER_LEASE)
            .returning(dispatches)
        )
        return tx.execute(update).one_or_none()

    def _next_people(self, tx: Connection, mailout: Row[Any], size: int) -> Sequence[Person]:
        """Active subscribers in the order of their addresses: rows that append are cheap rows."""
        if mailout.audience is not None:
            return self._test_audience(tx, mailout)
        query = _people(mailout).where(
            S.tenant_id == mailout.tenant_id, S.status == "active", S.address_key > mailout.plan_cursor
        )
        rows = tx.execute(query.order_by(S.address_key).limit(size)).all()
        return [Person(*row) for row in rows]

    def _test_audience(self, tx: Connection, mailout: Row[Any]) -> Sequence[Person]:
        """The few people of a test. Who is no subscriber gets a subscriber's fields, to see how they look."""
        everybody = _people(mailout).where(S.tenant_id == mailout.tenant_id)
        example = everybody.where(S.status == "active").order_by(S.address_key).limit(1)
        sample = tx.execute(example).first()
        pepper = pepper_in_force(self._db, tx)
        people = []
        for text in mailout.audience:
            address = parse_address(text)
            own = _people(mailout).where(S.tenant_id == mailout.tenant_id, S.address_key == address.key)
            row = tx.execute(own).first()
            key = suppression_key(address.key, pepper)
            known = row or sample
            name, attributes = (known.from_name, known.attributes) if known else (None, {})
            if row is None and sample is not None:
                attributes = {**attributes, NAMELESS: "yes"}
            people.append(Person(address.text, address.key, key, name, attributes, False, None))
        return people

    def _insert_jobs(
        self, tx: Connection, dispatch: Row[Any], people: Sequence[Person], now: datetime
    ) -> int:
        ids = time_ordered_ids(len(people), int(now.timestamp() * 1000))
        jobs = [
            PlannedJob(
                job_id,
                person.email,
                person.address_key,
                person.suppression_key,
                json.dumps(_fields(person), ensure_ascii=False),
                "skipped" if person.why_skipped else "scheduled",
                person.why_skipped,
            )
            for job_id, person in zip(ids, people, strict=True)
        ]
        return insert_jobs(self._db, tx, dispatch, jobs, now)


class Person(NamedTuple):
    """Whom to plan for, and with which fields."""

    email: str
    address_key: str
    suppression_key: str
    from_name: str | None
    attributes: dict[str, str]
    suppressed: bool
    got_mailout: str | None

    @property
    def why_skipped(self) -> str | None:
        return "suppressed" if self.suppressed else got_already(self.got_mailout)


def _people(mailout: Row[Any]) -> sa.Select[Any]:
    tenant_id = mailout.tenant_id
    denied = (
        sa.select(suppressions.c.key)
        .where(suppressions.c.key == S.suppression_key)
        .where(suppressions.c.tenant_id.in_([tenant_id, EVERYBODY]))
    )
    columns = (S.email, S.address_key, S.suppression_key, S.from_name, S.attributes)
    got = excluded_by(mailout.id, S.suppression_key) if mailout.except_of else sa.null()
    return sa.select(*columns, denied.exists().label("suppressed"), got.label("got_mailout"))


def _fields(person: Person) -> dict[str, str]:
    fields = dict(person.attributes)
    if person.from_name:
        fields["name"] = person.from_name
    return fields
