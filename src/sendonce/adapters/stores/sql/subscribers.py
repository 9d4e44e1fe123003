"""Subscribers on SQL. An import may add and rename people; it never undoes an opt-out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import FOLDED, subscribers, suppressions, tenants
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.import_batches import ImportBatch, write_to_postgres, write_to_sqlite
from sendonce.adapters.stores.sql.peppers import look_up_pepper, pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.adapters.stores.sql.suppressions import suppress_all
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.people_columns import (
    STATUSES,
    Denial,
    PeopleColumns,
    denied_counts,
    denied_mailboxes,
    suppression_keys,
)
from sendonce.domain.people.subscribers import (
    Addition,
    ImportCounts,
    NewSubscriber,
    Subscriber,
    SubscriberStatus,
    addition_of,
)
from sendonce.domain.people.suppression_keys import suppression_fold, suppression_key
from sendonce.domain.people.suppressions import EVERYBODY
from sendonce.errors import NotFound, Unavailable

S = subscribers.c
PERSON = sa.select(
    *(S.id, S.tenant_id, S.email, S.from_name, S.attributes, S.status, S.bounce_type, S.bounce_subtype),
    *(S.status_updated_at, S.created_at, S.consent),
)


class SqlSubscribers:
    def __init__(self, database: Database) -> None:
        self._db = database
        self.import_lanes = 1 if database.is_sqlite else 2  # SQLite has one writer at a time

    def upsert(self, tenant_id: TenantId, people: Sequence[NewSubscriber]) -> ImportCounts:
        unique = {person.address.key: person for person in people}
        repeated = ImportCounts(unchanged=len(people) - len(unique))
        return repeated + self.import_people(tenant_id, PeopleColumns.of(unique.values()))

    def import_people(
        self, tenant_id: TenantId, people: PeopleColumns, *, source: str | None = None, dry_run: bool = False
    ) -> ImportCounts:
        if not people and not people.denials:
            return ImportCounts()
        pepper = look_up_pepper(self._db)
        batch = ImportBatch.of(tenant_id, people, suppression_keys(people.keys, pepper))
        with self._db.writing() as tx:
            if pepper_in_force(self._db, tx) != pepper:
                raise Unavailable("The keys were rotated at this very moment: start the import again.")
            require_tenant(tx, tenant_id)
            begun = self._db.now(tx)
            denials = denied_mailboxes(people.denials, pepper, source, begun)
            suppress_all(tx, self._db, tenant_id, denials)
            statuses = self._statuses(tx, tenant_id, batch.suppression_keys)
            inserted, updated = self._write(tx, batch, statuses)
            lowered, deactivated = self._lower(tx, tenant_id, people.denials, begun)
            self._note_consents(tx, tenant_id, people.consents)
            if dry_run:
                tx.rollback()
        updated += lowered if people else 0
        counts = ImportCounts(inserted, updated, len(people) - inserted - updated, deactivated=deactivated)
        return counts + denied_counts(people.denials)

    def add(self, tenant_id: TenantId, person: NewSubscriber, actor: str) -> Addition:
        with self._db.writing() as tx:
            key = suppression_key(person.address.key, pepper_in_force(self._db, tx))
            require_tenant(tx, tenant_id)
            own = (S.tenant_id == tenant_id) & (S.address_key == person.address.key)
            known = tx.execute(sa.select(S.status).where(own).with_for_update()).scalar_one_or_none()
            denied = suppressions.c.tenant_id.in_([tenant_id, EVERYBODY]) & (suppressions.c.key == key)
            addition = addition_of(
                SubscriberStatus(known) if known else None,
                suppressed=tx.execute(sa.select(suppressions.c.key).where(denied)).first() is not None,
                consent=bool(person.consent),
            )
            if not addition.refused:
                now = self._db.now(tx)
                write_active(tx, self._db, tenant_id, person, key, now)
                insert_audit(tx, now, actor, "add subscriber", person.address.text, {"outcome": addition})
            return addition

    def _write(self, tx: Connection, batch: ImportBatch, statuses: list[str]) -> tuple[int, int]:
        if not batch.ids:
            return 0, 0
        write = write_to_sqlite if self._db.is_sqlite else write_to_postgres
        return write(tx, self._db, batch, statuses)

    def _lower(
        self, tx: Connection, tenant_id: TenantId, denials: Mapping[str, Denial], begun: datetime
    ) -> tuple[int, int]:
        """Take known people down to what the list says of them.

        How many of them the import has not changed otherwise, and how many were active until now.
        """
        only_lowered = deactivated = 0
        for status, above in (("bounced", ["active"]), ("unsubscribed", ["active", "bounced"])):
            keys = [key for key, denial in denials.items() if STATUSES[denial.reason] == status]
            if not keys:
                continue
            known = (S.tenant_id == tenant_id) & self._is_among(S.address_key, keys)
            higher = sa.select(S.status, S.updated_at).where(known, S.status.in_(above))
            found = tx.execute(higher.with_for_update()).all()
            only_lowered += sum(row.updated_at < begun for row in found)
            deactivated += sum(row.status == "active" for row in found)
            lower = subscribers.update().where(known, S.status.in_(above))
            tx.execute(lower.values(status=status, status_updated_at=begun, updated_at=begun))
        return only_lowered, deactivated

    def _note_consents(self, tx: Connection, tenant_id: TenantId, consents: Mapping[str, str]) -> None:
        """What is noted here already stays."""
        own = (S.tenant_id == tenant_id) & (S.address_key == sa.bindparam("key")) & S.consent.is_(None)
        if consents:
            rows = [{"key": key, "note": note} for key, note in consents.items()]
            tx.execute(subscribers.update().where(own).values(consent=sa.bindparam("note")), rows)

    def _statuses(self, tx: Connection, tenant_id: TenantId, keys: list[str]) -> list[str]:
        """What new people are to be: the suppressed are bounced or unsubscribed, never active."""
        denied: dict[str, str] = {}
        c = suppressions.c
        scopes = c.tenant_id.in_([tenant_id, EVERYBODY])
        if tx.execute(sa.select(c.key).where(scopes).limit(1)).first() is not None:
            among = sa.select(c.key, c.reason).where(scopes, self._is_among(c.key, keys))
            for key, reason in tx.execute(among):
                only_bounces = reason == "bounce" and denied.get(key) != "unsubscribed"
                denied[key] = "bounced" if only_bounces else "unsubscribed"
        return [denied.get(key, "active") for key in keys] if denied else ["active"] * len(keys)

    def _is_among(self, column: sa.Column[str], keys: list[str]) -> sa.ColumnElement[bool]:
        """Lists of any length as one value."""
        if self._db.is_sqlite:
            given = sa.func.json_each(sa.literal(json.dumps(keys))).table_valued("value")
            return column.in_(sa.select(given.c.value))
        return column == sa.any_(sa.literal(keys, ARRAY(sa.Text)))

    def all(
        self,
        tenant_id: TenantId,
        *,
        status: SubscriberStatus | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> Sequence[Subscriber]:
        query = PERSON.where(S.tenant_id == tenant_id, S.address_key > after)
        if status is not None:
            query = query.where(S.status == status)
        with self._db.reading() as tx:
            return [as_subscriber(row) for row in tx.execute(query.order_by(S.address_key).limit(limit))]

    def find(self, tenant_id: TenantId, address: Address) -> Subscriber | None:
        query = PERSON.where(S.tenant_id == tenant_id, S.address_key == address.key)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return as_subscriber(row) if row else None

    def count(self, tenant_id: TenantId) -> dict[str, int]:
        query = sa.select(S.status, sa.func.count()).where(S.tenant_id == tenant_id).group_by(S.status)
        with self._db.reading() as tx:
            return {row[0]: row[1] for row in tx.execute(query)}

    def attribute_names(self, tenant_id: TenantId) -> Sequence[str]:
        if self._db.is_sqlite:
            each = sa.func.json_each(S.attributes).table_valued("key")
            query = sa.select(each.c.key).select_from(subscribers).join(each, sa.true())
        else:
            query = sa.select(sa.func.jsonb_object_keys(S.attributes))
        with self._db.reading() as tx:
            return sorted(tx.execute(query.where(S.tenant_id == tenant_id).distinct()).scalars())

    def count_lacking(self, tenant_id: TenantId, variable: str) -> int:
        value = S.from_name if variable == "name" else S.attributes[variable].as_string()
        query = sa.select(sa.func.count()).where(S.tenant_id == tenant_id, S.status == "active")
        with self._db.reading() as tx:
            return tx.execute(query.where(sa.func.coalesce(value, "") == "")).scalar_one()


def shares_mailbox(address: Address, key: str) -> sa.ColumnElement[bool]:
    """Of the people, in the lists of all tenants, whose address is a spelling of this one's mailbox.

    Most addresses have one spelling and are found by it. Only the others are in the index of keys.
    """
    plain = S.tenant_id.in_(sa.select(tenants.c.id)) & (S.address_key == suppression_fold(address.key))
    return sa.or_(plain, sa.text(FOLDED) & (S.suppression_key == key))


def write_active(
    tx: Connection, database: Database, tenant_id: TenantId, person: NewSubscriber, key: str, now: datetime
) -> None:
    """Add a person, or make them active again, with the consent they gave."""
    given = {
        "id": new_id(now),
        "tenant_id": tenant_id,
        "email": person.address.text,
        "address_key": person.address.key,
        "suppression_key": key,
        "from_name": person.name,
        "attributes": person.attributes,
        "consent": person.consent,
        "created_at": now,
        "updated_at": now,
    }
    insert = insert_for(database)(subscribers).values(given)
    left = S.status != "active"
    noted = {
        "from_name": sa.func.coalesce(insert.excluded.from_name, S.from_name),
        "consent": sa.func.coalesce(insert.excluded.consent, S.consent),
        "status": "active",
        "bounce_type": sa.case((left, sa.null()), else_=S.bounce_type),
        "bounce_subtype": sa.case((left, sa.null()), else_=S.bounce_subtype),
        "status_updated_at": sa.case((left, insert.excluded.updated_at), else_=S.status_updated_at),
        "updated_at": insert.excluded.updated_at,
    }
    tx.execute(insert.on_conflict_do_update(index_elements=[S.tenant_id, S.address_key], set_=noted))


def require_tenant(tx: Connection, tenant_id: TenantId) -> None:
    """Once a chunk, in place of a foreign key that would look once a row. Nothing deletes a tenant."""
    if tx.execute(sa.select(tenants.c.id).where(tenants.c.id == tenant_id)).first() is None:
        raise NotFound(f"There is no tenant {tenant_id!r}, so nobody was added to its list.")


def as_subscriber(row: Sequence[Any]) -> Subscriber:
    """Of a row that ``PERSON`` gave, whose columns have the order of the fields: exports make millions."""
    own_id, tenant_id, email, name, attributes, status, *rest = row
    return Subscriber(own_id, tenant_id, email, name, attributes, SubscriberStatus(status), *rest)
