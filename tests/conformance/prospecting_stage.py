"""A database with a search or two, and companies that they found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from sendonce.adapters.stores.schema import directions, serp_queries
from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.ids import time_ordered_id
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.prospecting.companies import Company, Findings, Found, FoundSite, Visit

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
LEASE = timedelta(minutes=5)


class Prospects:
    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.companies = store.companies
        self.query = self.add_query("производители насосов")

    def add_query(self, text: str, region: str = "Казань", direction: str = "default") -> str:
        query_id = time_ordered_id(int(NOW.timestamp() * 1000))
        own = {"tenant_id": DEFAULT_TENANT, "created_at": NOW, "updated_at": NOW}
        with self.store.database.writing() as tx:
            known = sa.select(directions.c.id).where(directions.c.id == direction)
            if tx.execute(known).first() is None:
                basis = {"jurisdiction": "RU", "basis": "consent", "language": "ru"}
                tx.execute(directions.insert().values(id=direction, name=direction, **basis, **own))
            what = {"direction_id": direction, "text": text, "region": region, "pages": 1}
            tx.execute(serp_queries.insert().values(id=query_id, query_hash=text + region, **what, **own))
        return query_id

    def find(self, *domains: str, query: str | None = None, now: datetime = NOW) -> Found:
        sites = [site(domain) for domain in domains]
        return self.companies.found(DEFAULT_TENANT, query or self.query, sites, now)

    def company(self, domain: str) -> Company:
        company = self.companies.at(DEFAULT_TENANT, domain)
        assert company is not None
        return company

    def take(self, limit: int = 100, worker: str = "w", now: datetime = NOW) -> Sequence[Visit]:
        return self.companies.take_visits(worker, limit, now, LEASE)

    def visit(self, now: datetime = NOW, **findings: Findings) -> None:
        """Visit everybody who waits; ``findings`` are by the domain's first label."""
        for visit in self.take(now=now):
            found = findings.get(visit.company.domain.partition(".")[0], Findings(has_contacts=True))
            assert self.companies.visited(visit, found, now)


def site(domain: str, title: str = "") -> FoundSite:
    return FoundSite(f"https://www.{domain}/catalog?page=2", domain, title or f"Завод {domain}", "ru")
