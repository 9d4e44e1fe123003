"""Leads, pools of senders and leases on SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Row

from sendonce.adapters.stores.schema import leads, leases, sender_limits
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.campaigns.leads import Lead, LeadCounts, NewLead
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.receivers import Receiver
from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.errors import NotFound

L, P, E = leads.c, sender_limits.c, leases.c
_REFRESHED = ("name", "company", "company_key", "timezone", "receiver", "fields")


class SqlLeads:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(
        self, tenant_id: TenantId, direction_id: str, leads_: Sequence[NewLead], source: str
    ) -> LeadCounts:
        added = updated = 0
        with self._db.writing() as tx:
            now = self._db.now(tx)
            for lead in leads_:
                told = {
                    "name": lead.name,
                    "company": lead.company,
                    "company_key": lead.company_key,
                    "timezone": lead.timezone,
                    "receiver": lead.receiver,
                    "fields": dict(lead.fields),
                }
                key = {"tenant_id": tenant_id, "direction_id": direction_id, "address_key": lead.address.key}
                row = {**key, **told, "email": lead.address.text, "source": source}
                put = insert_for(self._db)(leads).values(
                    id=new_id(now), created_at=now, updated_at=now, **row
                )
                put = put.on_conflict_do_nothing(index_elements=list(key)).returning(L.id)
                if tx.execute(put).one_or_none() is not None:
                    added += 1
                    continue
                here = sa.and_(*(leads.c[name] == value for name, value in key.items()))
                known = tx.execute(sa.select(*(leads.c[name] for name in _REFRESHED)).where(here)).one()
                if lead.receiver == Receiver.OTHER:
                    told["receiver"] = known.receiver  # silence of the DNS takes nothing back
                if known._asdict() != told:
                    tx.execute(leads.update().where(here).values(**told, updated_at=now))
                    updated += 1
        return LeadCounts(added, updated, len(leads_) - added - updated)

    def all(
        self, tenant_id: TenantId, direction_id: str | None = None, *, after: str = "", limit: int = 1000
    ) -> Sequence[Lead]:
        query = sa.select(leads).where(L.tenant_id == tenant_id).order_by(L.id).limit(limit)
        if direction_id is not None:
            query = query.where(L.direction_id == direction_id)
        if after:
            query = query.where(L.id > after)
        with self._db.reading() as tx:
            return [_as_lead(row) for row in tx.execute(query)]

    def find(self, tenant_id: TenantId, direction_id: str, address: Address) -> Lead | None:
        query = sa.select(leads).where(
            L.tenant_id == tenant_id, L.direction_id == direction_id, L.address_key == address.key
        )
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_lead(row) if row else None

    def count(self, tenant_id: TenantId, direction_id: str) -> int:
        query = sa.select(sa.func.count()).where(L.tenant_id == tenant_id, L.direction_id == direction_id)
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one()


class SqlPools:
    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, tenant_id: TenantId, limits: SenderLimits) -> None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            told = {name: value for name, value in asdict(limits).items() if name != "sender_id"}
            told |= {"tenant_id": tenant_id, "ramp": list(limits.ramp)}
            row = {**told, "paced_at": limits.paced_at or now}
            put = insert_for(self._db)(sender_limits).values(
                sender_id=limits.sender_id, created_at=now, updated_at=now, **row
            )
            asked = ("direction_id", "daily", "per_hour", "ramp")
            again = {name: row[name] for name in asked} | {"updated_at": now}
            own = P.tenant_id == tenant_id
            put = put.on_conflict_do_update(index_elements=["sender_id"], set_=again, where=own)
            if tx.execute(put.returning(P.sender_id)).one_or_none() is None:
                raise NotFound(f"{tenant_id} has no sender {limits.sender_id}: see 'sendonce sender list'.")

    def of_direction(self, tenant_id: TenantId, direction_id: str) -> Sequence[SenderLimits]:
        query = sa.select(sender_limits).where(P.tenant_id == tenant_id, P.direction_id == direction_id)
        with self._db.reading() as tx:
            return [_as_limits(row) for row in tx.execute(query.order_by(P.sender_id))]

    def get(self, tenant_id: TenantId, sender_id: str) -> SenderLimits | None:
        query = sa.select(sender_limits).where(P.tenant_id == tenant_id, P.sender_id == sender_id)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_limits(row) if row else None

    def set_pace(self, tenant_id: TenantId, sender_id: str, pace: float, now: datetime) -> None:
        self._change(tenant_id, sender_id, {"pace": pace, "paced_at": now})

    def judge_from(self, tenant_id: TenantId, sender_id: str, moment: datetime) -> None:
        self._change(tenant_id, sender_id, {"judged_from": moment})

    def _change(self, tenant_id: TenantId, sender_id: str, changes: Mapping[str, Any]) -> None:
        own = sender_limits.update().where(P.tenant_id == tenant_id, P.sender_id == sender_id)
        with self._db.writing() as tx:
            tx.execute(own.values(changes))


class SqlLeases:
    def __init__(self, database: Database) -> None:
        self._db = database

    def take(self, name: str, holder: str, lasting: timedelta) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mine = {"holder": holder, "until": now + lasting}
            put = insert_for(self._db)(leases).values(name=name, **mine)
            free = sa.or_(E.holder == holder, E.until < now)
            put = put.on_conflict_do_update(index_elements=["name"], set_=mine, where=free)
            return tx.execute(put.returning(E.name)).one_or_none() is not None

    def leave(self, name: str, holder: str) -> None:
        with self._db.writing() as tx:
            tx.execute(leases.delete().where(E.name == name, E.holder == holder))


def _as_lead(row: Row[Any]) -> Lead:
    return Lead(**{name: getattr(row, name) for name in Lead.__slots__})


def _as_limits(row: Row[Any]) -> SenderLimits:
    told = {name: getattr(row, name) for name in SenderLimits.__slots__}
    return SenderLimits(**{**told, "ramp": tuple(row.ramp)})
