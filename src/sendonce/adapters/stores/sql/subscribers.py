"""Subscribers on SQL. An import may add and rename people; it never undoes an opt-out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import subscribers, suppressions
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.addresses import Address, suppression_key
from sendonce.domain.ids import time_ordered_ids
from sendonce.domain.subscribers import ImportCounts, NewSubscriber, Subscriber, SubscriberStatus
from sendonce.domain.suppressions import EVERYBODY

S = subscribers.c


class SqlSubscribers:
    def __init__(self, database: Database, pepper: bytes) -> None:
        self._db = database
        self._pepper = pepper

    def upsert(self, tenant_id: str, people: Sequence[NewSubscriber]) -> ImportCounts:
        # In the order of the addresses: two imports at once then wait in line and not for each other.
        unique = dict(sorted({p.address.key: p for p in people}.items()))
        if not unique:
            return ImportCounts()
        keys = {key: suppression_key(key, self._pepper) for key in unique}
        with self._db.writing() as tx:
            now = self._db.now(tx)
            known = self._known(tx, tenant_id, list(unique))
            denied = self._denied(tx, tenant_id, [keys[key] for key in unique if key not in known])
            rows = self._rows(tenant_id, unique, keys, denied, now)
            written = self._write(tx, rows)
        inserted = len(unique) - len(known)
        updated = max(written - inserted, 0)
        return ImportCounts(inserted, updated, len(people) - inserted - updated)

    def _known(self, tx: Connection, tenant_id: str, keys: list[str]) -> set[str]:
        if self._db.is_sqlite:
            keys_given = "SELECT value FROM json_each(?)"
            query = (
                f"SELECT address_key FROM subscribers WHERE tenant_id = ? AND address_key IN ({keys_given})"  # noqa: S608 (no value in it)
            )
            rows = tx.exec_driver_sql(query, (tenant_id, json.dumps(keys)))
        else:
            query = "SELECT address_key FROM subscribers WHERE tenant_id = %s AND address_key = ANY(%s)"
            rows = tx.exec_driver_sql(query, (tenant_id, keys))
        return {row[0] for row in rows}

    def _denied(self, tx: Connection, tenant_id: str, keys: list[str]) -> dict[str, str]:
        """What the suppressed among new people are to be: bounced or unsubscribed, never active."""
        denied: dict[str, str] = {}
        c = suppressions.c
        for start in range(0, len(keys), 500):
            query = sa.select(c.key, c.reason).where(
                c.key.in_(keys[start : start + 500]), c.tenant_id.in_([tenant_id, EVERYBODY])
            )
            for key, reason in tx.execute(query):
                only_bounces = reason == "bounce" and denied.get(key) != "unsubscribed"
                denied[key] = "bounced" if only_bounces else "unsubscribed"
        return denied

    def _rows(
        self,
        tenant_id: str,
        people: dict[str, NewSubscriber],
        keys: dict[str, str],
        denied: dict[str, str],
        now: datetime,
    ) -> list[tuple[Any, ...]]:
        ids = time_ordered_ids(len(people), int(now.timestamp() * 1000))
        moment = self._db.moment(now)
        return [
            (
                row_id,
                tenant_id,
                person.address.text,
                key,
                keys[key],
                person.name,
                json.dumps(person.attributes, ensure_ascii=False, sort_keys=True),
                denied.get(keys[key], "active"),
                moment,
            )
            for row_id, (key, person) in zip(ids, people.items(), strict=True)
        ]

    def _write(self, tx: Connection, rows: list[tuple[Any, ...]]) -> int:
        statement = self._db.statement("import_subscribers")
        if self._db.is_sqlite:
            return tx.exec_driver_sql(statement, rows).rowcount
        columns = [list(column) for column in zip(*rows, strict=True)]
        named = {
            "ids": columns[0],
            "tenant": rows[0][1],
            "emails": columns[2],
            "keys": columns[3],
            "suppression_keys": columns[4],
            "names": columns[5],
            "attributes": columns[6],
            "statuses": columns[7],
            "now": rows[0][8],
        }
        return tx.exec_driver_sql(statement, named).rowcount

    def all(
        self, tenant_id: str, *, status: SubscriberStatus | None = None, after: str = "", limit: int = 1000
    ) -> Sequence[Subscriber]:
        query = sa.select(subscribers).where(S.tenant_id == tenant_id, S.address_key > after)
        if status is not None:
            query = query.where(S.status == status)
        with self._db.reading() as tx:
            return [_as_subscriber(row) for row in tx.execute(query.order_by(S.address_key).limit(limit))]

    def find(self, tenant_id: str, address: Address) -> Subscriber | None:
        query = sa.select(subscribers).where(S.tenant_id == tenant_id, S.address_key == address.key)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_subscriber(row) if row else None

    def count(self, tenant_id: str) -> dict[str, int]:
        query = sa.select(S.status, sa.func.count()).where(S.tenant_id == tenant_id).group_by(S.status)
        with self._db.reading() as tx:
            return {row[0]: row[1] for row in tx.execute(query)}

    def count_lacking(self, tenant_id: str, variable: str) -> int:
        value = S.from_name if variable == "name" else S.attributes[variable].as_string()
        query = sa.select(sa.func.count()).where(S.tenant_id == tenant_id, S.status == "active")
        with self._db.reading() as tx:
            return tx.execute(query.where(sa.func.coalesce(value, "") == "")).scalar_one()


def _as_subscriber(row: Row[Any]) -> Subscriber:
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
