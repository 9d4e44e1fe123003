"""Contacts of companies on SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import companies, contacts
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.kept_contacts import (
    Contact,
    ContactKind,
    SeenContact,
    TakesMail,
    Trouble,
    merge_all,
    merged,
    primary_of,
)

C = contacts.c
_SELECT = sa.select(contacts, companies.c.domain).join_from(contacts, companies)
_BY_COMPANY = (C.company_id, C.kind, C.is_primary.desc(), C.quality.desc(), C.id)


class SqlContacts:
    def __init__(self, database: Database) -> None:
        self._db = database

    def keep(self, tenant_id: TenantId, company_id: str, seen: Sequence[SeenContact], now: datetime) -> int:
        with self._db.writing() as tx:
            if not _lock(tx, tenant_id, company_id):
                return 0
            known = {(one.seen.kind, one.seen.key): one for one in _of(tx, company_id)}
            ids = iter(time_ordered_ids(len(seen), int(now.timestamp() * 1000)))
            fresh: list[dict[str, Any]] = []
            for contact in merge_all(seen):
                present = known.get((contact.kind, contact.key))
                if present is None:
                    own = {"id": next(ids), "tenant_id": tenant_id, "company_id": company_id}
                    fresh.append({**own, **_new(contact, now)})
                else:
                    told = _told(merged(present.seen, contact))
                    change = contacts.update().where(C.id == present.id)
                    tx.execute(change.values(**told, last_seen_at=max(now, present.last_seen_at)))
            if fresh:
                tx.execute(contacts.insert(), fresh)
            _choose_primaries(tx, company_id)
        return len(fresh)

    def of(self, tenant_id: TenantId, company_ids: Sequence[str]) -> Mapping[str, Sequence[Contact]]:
        query = _SELECT.where(C.tenant_id == tenant_id, C.company_id.in_(company_ids))
        found: dict[str, list[Contact]] = {company_id: [] for company_id in company_ids}
        with self._db.reading() as tx:
            for row in tx.execute(query.order_by(*_BY_COMPANY)):
                found[row.company_id].append(_as_contact(row))
        return found

    def all(
        self, tenant_id: TenantId, *, kind: ContactKind | None = None, after: str = "", limit: int = 1000
    ) -> Sequence[Contact]:
        query = _SELECT.where(C.tenant_id == tenant_id).order_by(C.id).limit(limit)
        if kind is not None:
            query = query.where(C.kind == kind)
        if after:
            query = query.where(C.id > after)
        with self._db.reading() as tx:
            return [_as_contact(row) for row in tx.execute(query)]

    def count(self, tenant_id: TenantId) -> Mapping[ContactKind, int]:
        query = sa.select(C.kind, sa.func.count()).where(C.tenant_id == tenant_id).group_by(C.kind)
        with self._db.reading() as tx:
            return {ContactKind(kind): number for kind, number in tx.execute(query)}

    def give_up(self, tenant_id: TenantId, address_key: str, trouble: Trouble) -> int:
        own = (C.tenant_id == tenant_id) & (C.kind == "email") & (C.value_key == address_key.casefold())
        with self._db.writing() as tx:
            companies_with_it = sorted(tx.execute(sa.select(C.company_id).where(own)).scalars())
            for company_id in companies_with_it:
                _lock(tx, tenant_id, company_id)
            changed = tx.execute(contacts.update().where(own).values(trouble=trouble)).rowcount
            for company_id in companies_with_it:
                _choose_primaries(tx, company_id)
        return changed


def _lock(tx: Connection, tenant_id: TenantId, company_id: str) -> bool:
    """One writer at a time for a company's contacts; whether there is such a company."""
    own = (companies.c.tenant_id == tenant_id) & (companies.c.id == company_id)
    return tx.execute(sa.select(companies.c.id).where(own).with_for_update()).first() is not None


def _of(tx: Connection, company_id: str) -> list[Contact]:
    """In the order in which they were first seen."""
    query = _SELECT.where(C.company_id == company_id).order_by(C.id)
    return [_as_contact(row) for row in tx.execute(query)]


def _choose_primaries(tx: Connection, company_id: str) -> None:
    present = _of(tx, company_id)
    for kind in ContactKind:
        of_kind = [contact for contact in present if contact.seen.kind is kind]
        chosen = primary_of(of_kind)
        for contact in of_kind:
            primary = contact is chosen
            if contact.primary != primary:
                tx.execute(contacts.update().where(C.id == contact.id).values(is_primary=primary))


def _new(seen: SeenContact, now: datetime) -> dict[str, Any]:
    times = {"created_at": now, "last_seen_at": now}
    return {"kind": seen.kind, "value_key": seen.key, **times, **_told(seen)}


def _told(seen: SeenContact) -> dict[str, Any]:
    return {
        "value": seen.value,
        "quality": seen.quality,
        "source": seen.source,
        "source_url": seen.source_url,
        "role": seen.role,
        "freemail": seen.freemail,
        "takes_mail": seen.takes_mail,
        "attributes": dict(seen.attributes),
    }


def _as_contact(row: Row[Any]) -> Contact:
    seen = SeenContact(
        kind=ContactKind(row.kind),
        value=row.value,
        quality=row.quality,
        source=row.source,
        source_url=row.source_url,
        role=row.role,
        freemail=row.freemail,
        takes_mail=TakesMail(row.takes_mail) if row.takes_mail else None,
        attributes=row.attributes,
    )
    trouble = Trouble(row.trouble) if row.trouble else None
    return Contact(
        id=row.id,
        tenant_id=row.tenant_id,
        company_id=row.company_id,
        domain=row.domain,
        seen=seen,
        primary=row.is_primary,
        trouble=trouble,
        created_at=row.created_at,
        last_seen_at=row.last_seen_at,
    )
