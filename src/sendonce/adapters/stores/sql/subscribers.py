"""Subscribers on SQL. An import may add and rename people; it never undoes an opt-out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import subscribers, suppressions, tenants
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.import_batches import ImportBatch, write_to_postgres, write_to_sqlite
from sendonce.adapters.stores.sql.peppers import look_up_pepper, pepper_in_force
from sendonce.domain.addresses import Address
from sendonce.domain.people_columns import PeopleColumns, suppression_keys
from sendonce.domain.subscribers import ImportCounts, NewSubscriber, Subscriber, SubscriberStatus
from sendonce.domain.suppressions import EVERYBODY
from sendonce.errors import NotFound, Unavailable

S = subscribers.c


class SqlSubscribers:
    def __init__(self, database: Database) -> None:
        self._db = database
        self.import_lanes = 1 if database.is_sqlite else 2  # SQLite has one writer at a time

    def upsert(self, tenant_id: str, people: Sequence[NewSubscriber]) -> ImportCounts:
        unique = {person.address.key: person for person in people}
        repeated = ImportCounts(unchanged=len(people) - len(unique))
        return repeated + self.import_people(tenant_id, PeopleColumns.of(unique.values()))

    def import_people(self, tenant_id: str, people: PeopleColumns, *, dry_run: bool = False) -> ImportCounts:
        if not people:
            return ImportCounts()
        pepper = look_up_pepper(self._db)
        batch = ImportBatch.of(tenant_id, people, suppression_keys(people.keys, pepper))
        write = write_to_sqlite if self._db.is_sqlite else write_to_postgres
        with self._db.writing() as tx:
            if pepper_in_force(self._db, tx) != pepper:
                raise Unavailable("The keys were rotated at this very moment: start the import again.")
            _require_tenant(tx, tenant_id)
            statuses = self._statuses(tx, tenant_id, batch.suppression_keys)
            inserted, updated = write(tx, self._db, batch, statuses)
            if dry_run:
                tx.rollback()
        return ImportCounts(inserted, updated, len(people) - inserted - updated)

    def _statuses(self, tx: Connection, tenant_id: str, keys: list[str]) -> list[str]:
        """What new people are to be: the suppressed are bounced or unsubscribed, never active."""
        denied: dict[str, str] = {}
        c = suppressions.c
        scopes = c.tenant_id.in_([tenant_id, EVERYBODY])
        if tx.execute(sa.select(c.key).where(scopes).limit(1)).first() is not None:
            among = sa.select(c.key, c.reason).where(scopes, self._is_among(keys))
            for key, reason in tx.execute(among):
                only_bounces = reason == "bounce" and denied.get(key) != "unsubscribed"
                denied[key] = "bounced" if only_bounces else "unsubscribed"
        return [denied.get(key, "active") for key in keys] if denied else ["active"] * len(keys)

    def _is_among(self, keys: list[str]) -> sa.ColumnElement[bool]:
        """Lists of any length as one value."""
        if self._db.is_sqlite:
            given = sa.func.json_each(sa.literal(json.dumps(keys))).table_valued("value")
            return suppressions.c.key.in_(sa.select(given.c.value))
        return suppressions.c.key == sa.any_(sa.literal(keys, ARRAY(sa.Text)))

    def all(
        self, tenant_id: str, *, status: SubscriberStatus | None = None, after: str = "", limit: int = 1000
    ) -> Sequence[Subscriber]:
        query = sa.select(subscribers).where(S.tenant_id == tenant_id, S.address_key > after)
        if status is not None:
            query = query.where(S.status == status)
        with self._db.reading() as tx:
            return [as_subscriber(row) for row in tx.execute(query.order_by(S.address_key).limit(limit))]

    def find(self, tenant_id: str, address: Address) -> Subscriber | None:
        query = sa.select(subscribers).where(S.tenant_id == tenant_id, S.address_key == address.key)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return as_subscriber(row) if row else None

    def count(self, tenant_id: str) -> dict[str, int]:
        query = sa.select(S.status, sa.func.count()).where(S.tenant_id == tenant_id).group_by(S.status)
        with self._db.reading() as tx:
            return {row[0]: row[1] for row in tx.execute(query)}

    def attribute_names(self, tenant_id: str) -> Sequence[str]:
        if self._db.is_sqlite:
            each = sa.func.json_each(S.attributes).table_valued("key")
            query = sa.select(each.c.key).select_from(subscribers).join(each, sa.true())
        else:
            query = sa.select(sa.func.jsonb_object_keys(S.attributes))
        with self._db.reading() as tx:
            return sorted(tx.execute(query.where(S.tenant_id == tenant_id).distinct()).scalars())

    def count_lacking(self, tenant_id: str, variable: str) -> int:
        value = S.from_name if variable == "name" else S.attributes[variable].as_string()
        query = sa.select(sa.func.count()).where(S.tenant_id == tenant_id, S.status == "active")
        with self._db.reading() as tx:
            return tx.execute(query.where(sa.func.coalesce(value, "") == "")).scalar_one()


def _require_tenant(tx: Connection, tenant_id: str) -> None:
    """Once a chunk, in place of a foreign key that would look once a row. Nothing deletes a tenant."""
    if tx.execute(sa.select(tenants.c.id).where(tenants.c.id == tenant_id)).first() is None:
        raise NotFound(f"There is no tenant {tenant_id!r}, so nobody was added to its list.")


def as_subscriber(row: Row[Any]) -> Subscriber:
    return Subscriber(
        id=row.id,
        tenant_id=row.tenant_id,
        email=row.email,
        name=row.from_name,
        attributes=row.attributes,
        status=SubscriberStatus(row.status),
        bounce_type=row.bounce_type,
        bounce_subtype=row.bounce_subtype,
        status_updated_at=row.status_updated_at,
        created_at=row.created_at,
    )
