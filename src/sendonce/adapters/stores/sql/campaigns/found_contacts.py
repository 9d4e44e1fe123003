"""Contacts that prospecting found, as campaigns ask for them, on SQL."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from sendonce.adapters.stores.schema import (
    companies,
    company_queries,
    contacts,
    serp_queries,
    written_letters,
)
from sendonce.adapters.stores.sql.database import Database
from sendonce.domain.campaigns.leads import FoundContact
from sendonce.domain.engine.tenants import TenantId

C, K, Q, W = companies.c, contacts.c, serp_queries.c, written_letters.c


class SqlFoundContacts:
    def __init__(self, database: Database) -> None:
        self._db = database

    def of_direction(
        self, tenant_id: TenantId, direction_id: str, *, after: str = "", limit: int = 1000
    ) -> Sequence[FoundContact]:
        finders = company_queries.join(serp_queries, Q.id == company_queries.c.query_id)
        found = (
            sa.select(company_queries.c.company_id)
            .select_from(finders)
            .where(company_queries.c.company_id == C.id, Q.tenant_id == tenant_id)
            .where(sa.or_(Q.direction_id == direction_id, Q.direction_id.is_(None)))
        )
        written = sa.select(W.id).where(
            W.tenant_id == tenant_id,
            W.direction_id == direction_id,
            W.company_id == C.id,
            W.status.in_(["approved", "planned"]),
        )
        usable = sa.and_(
            K.kind == "email",
            K.is_primary,
            K.trouble.is_(None),
            sa.or_(K.takes_mail.is_(None), K.takes_mail != "no"),
        )
        columns = (K.id, K.value, K.role, K.freemail, C.name, C.city, C.domain, K.source_url)
        query = (
            sa.select(*columns)
            .join_from(contacts, companies, C.id == K.company_id)
            .where(K.tenant_id == tenant_id, C.tenant_id == tenant_id, usable)
            .where(C.status == "enriched", ~C.opt_out, C.primary_id.is_(None))
            .where(found.exists(), ~written.exists())
            .order_by(K.id)
            .limit(limit)
        )
        with self._db.reading() as tx:
            rows = tx.execute(query.where(K.id > after) if after else query)
            return [FoundContact(*row) for row in rows]
