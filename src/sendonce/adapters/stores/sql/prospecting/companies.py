"""Companies on SQL. A batch of search results costs the same few statements, however many are known."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    companies,
    company_domains,
    company_marks,
    company_queries,
    serp_queries,
)
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.prospecting.tasks import add_task, end_task, take_tasks
from sendonce.adapters.stores.sql.prospecting.wishes import suppress_contacts
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.engine.ids import prefix_range, time_ordered_ids
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.companies import (
    Company,
    CompanyStatus,
    Fact,
    Findings,
    Found,
    FoundBy,
    FoundSite,
    Visit,
    home_of,
    readable,
    short_name,
)
from sendonce.domain.prospecting.duplicates import marks_of
from sendonce.domain.prospecting.tasks import MOST_ATTEMPTS, TaskKind, dedupe_task

C = companies.c
D = company_domains.c
_DEADLY = f"{MOST_ATTEMPTS} workers in a row did not come back from a visit to it."


class SqlCompanies:
    def __init__(self, database: Database) -> None:
        self._db = database

    def found(self, tenant_id: TenantId, query_id: str, sites: Sequence[FoundSite], now: datetime) -> Found:
        if not sites:
            return Found({}, 0)
        given = {
            "tenant": tenant_id,
            "now": self._db.moment(now),
            "sites": json.dumps(_proposals(sites, now)),
        }
        with self._db.writing() as tx:
            if self._db.is_sqlite:
                # Domains come in no order: with the default of 2 MB, pages are read again and again.
                tx.exec_driver_sql("PRAGMA cache_size = -65536")
            for statement in ("found_domains", "found_companies", "found_visits"):
                self._execute(tx, statement, given)
            owners = self._execute(tx, "found_owners", given).fetchall()
            finders = sorted({each for _, own, primary, _ in owners for each in (own, primary) if each})
            by_search = {"query": query_id, "now": given["now"], "companies": json.dumps(finders)}
            self._execute(tx, "found_queries", by_search)
        ids = {domain: primary or own for domain, own, primary, _ in owners}
        return Found(ids, sum(bool(created) for *_, created in owners))

    def _execute(self, tx: Connection, statement: str, values: Mapping[str, Any]) -> Any:
        return self._db.driver(tx).execute(self._db.statement(statement), values)

    def get(self, tenant_id: TenantId, company_id: str) -> Company | None:
        return self._one(sa.select(companies).where(C.tenant_id == tenant_id, C.id == company_id))

    def at(self, tenant_id: TenantId, domain: str) -> Company | None:
        owner = sa.select(D.company_id).where(D.tenant_id == tenant_id, D.domain == domain)
        return self._one(sa.select(companies).where(C.tenant_id == tenant_id, C.id.in_(owner)))

    def _one(self, query: sa.Select[Any]) -> Company | None:
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return as_company(row) if row else None

    def all(
        self, tenant_id: TenantId, *, status: CompanyStatus | None = None, after: str = "", limit: int = 1000
    ) -> Sequence[Company]:
        query = sa.select(companies).where(C.tenant_id == tenant_id).order_by(C.id).limit(limit)
        if status is not None:
            query = query.where(C.status == status)
        if after:
            query = query.where(C.id > after)
        with self._db.reading() as tx:
            return [as_company(row) for row in tx.execute(query)]

    def count(self, tenant_id: TenantId) -> Mapping[CompanyStatus, int]:
        query = sa.select(C.status, sa.func.count()).where(C.tenant_id == tenant_id).group_by(C.status)
        with self._db.reading() as tx:
            return {CompanyStatus(row[0]): row[1] for row in tx.execute(query)}

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        query = sa.select(C.id).where(C.tenant_id == tenant_id, C.id >= first, C.id <= last)
        with self._db.reading() as tx:
            return list(tx.execute(query.order_by(C.id).limit(limit)).scalars())

    def found_by(self, tenant_id: TenantId, company_ids: Sequence[str]) -> Mapping[str, Sequence[FoundBy]]:
        q, link = serp_queries.c, company_queries.c
        query = (
            sa.select(link.company_id, q.id, q.text, q.region, q.direction_id)
            .join_from(company_queries, serp_queries, q.id == link.query_id)
            .where(q.tenant_id == tenant_id, link.company_id.in_(company_ids))
            .order_by(link.created_at, q.id)
        )
        found: defaultdict[str, list[FoundBy]] = defaultdict(list)
        with self._db.reading() as tx:
            for company_id, *search in tx.execute(query):
                found[company_id].append(FoundBy(*search))
        return found

    def opt_out(self, tenant_id: TenantId, company_id: str, reason: str, now: datetime) -> None:
        own = (C.tenant_id == tenant_id) & (C.id == company_id)
        with self._db.writing() as tx:
            out = {"opt_out": True, "opt_out_reason": reason, "updated_at": now}
            if tx.execute(companies.update().where(own).values(out)).rowcount:
                suppress_contacts(self._db, tx, tenant_id, company_id, reason, now)
                add_task(tx, self._db, dedupe_task(tenant_id, company_id), now)

    def take_visits(self, worker: str, limit: int, now: datetime, lease: timedelta) -> Sequence[Visit]:
        with self._db.writing() as tx:
            tasks = take_tasks(tx, TaskKind.VISIT, worker, limit, now, lease)
            wanted = {task.payload["company"] for task in tasks}
            rows = tx.execute(sa.select(companies).where(C.id.in_(wanted)))
            known = {row.id: as_company(row) for row in rows}
            visits = [Visit(task, known[task.payload["company"]]) for task in tasks]
            for visit in visits:
                if visit.task.attempt > MOST_ATTEMPTS:
                    self._give_up(tx, visit, _DEADLY, now)
        return [visit for visit in visits if visit.task.attempt <= MOST_ATTEMPTS]

    def visited(self, visit: Visit, findings: Findings, now: datetime) -> bool:
        company = visit.company
        with self._db.writing() as tx:
            if not end_task(tx, visit.task, now, state="done", reason=None):
                return False
            self._keep_facts(tx, company, findings, now)
            self._keep_marks(tx, company, findings, now)
            add_task(tx, self._db, dedupe_task(company.tenant_id, company.id), now)
            return True

    def _keep_facts(self, tx: Connection, company: Company, findings: Findings, now: datetime) -> None:
        status = CompanyStatus.ENRICHED if findings.has_contacts else CompanyStatus.NO_CONTACTS
        told = {
            "name": short_name(findings.name) or company.name,
            "website_url": findings.website_url or company.website_url,
            "inn": next(iter(findings.inn), None),
            "ogrn": next(iter(findings.ogrn), None),
            "city": readable(findings.city) if findings.city else None,
            "facts": [asdict(replace(fact, value=readable(fact.value))) for fact in findings.facts],
            "reason": findings.reason,
            "crawled_at": now,
            "updated_at": now,
        }
        tx.execute(companies.update().where(C.id == company.id).values(told))
        # It may have become a duplicate while its site was read.
        waiting = (C.id == company.id) & (C.status != CompanyStatus.DUPLICATE)
        tx.execute(companies.update().where(waiting).values(status=status))

    def _keep_marks(self, tx: Connection, company: Company, findings: Findings, now: datetime) -> None:
        insert, owner = insert_for(self._db), {"tenant_id": company.tenant_id, "company_id": company.id}
        tx.execute(company_marks.delete().where(company_marks.c.company_id == company.id))
        shown = {**owner, "created_at": now}
        marks = [{**shown, "kind": kind, "value": value} for kind, value in marks_of(findings)]
        if marks:
            tx.execute(company_marks.insert(), marks)
        if findings.moved_to:
            alias = {**owner, "domain": findings.moved_to, "how": "redirect", "created_at": now}
            tx.execute(insert(company_domains).values(alias).on_conflict_do_nothing())

    def put_off(self, visit: Visit, until: datetime, reason: str, now: datetime) -> bool:
        with self._db.writing() as tx:
            return end_task(tx, visit.task, now, state="waiting", due_at=until, reason=readable(reason))

    def unreachable(self, visit: Visit, reason: str, now: datetime) -> bool:
        with self._db.writing() as tx:
            return self._give_up(tx, visit, reason, now)

    def _give_up(self, tx: Connection, visit: Visit, reason: str, now: datetime) -> bool:
        if not end_task(tx, visit.task, now, state="failed", reason=readable(reason)):
            return False
        waiting = (C.id == visit.company.id) & (C.status != CompanyStatus.DUPLICATE)
        why = {"reason": readable(reason), "crawled_at": now, "updated_at": now}
        tx.execute(companies.update().where(waiting).values(status=CompanyStatus.UNREACHABLE, **why))
        return True


def _proposals(sites: Sequence[FoundSite], now: datetime) -> list[dict[str, Any]]:
    """A company for each domain, in the order of domains: two batches that meet wait and never deadlock."""
    first: dict[str, FoundSite] = {}
    for site in sites:
        first.setdefault(site.domain, site)
    ids = iter(time_ordered_ids(2 * len(first), int(now.timestamp() * 1000)))
    ordered = {domain: (next(ids), next(ids)) for domain in first}
    return [
        {
            "id": ordered[domain][0],
            "task": ordered[domain][1],
            "domain": domain,
            "url": home_of(first[domain].url),
            # The title of a page is not a name, but all that is known before the first visit.
            "facts": [{"fact": "title", "value": readable(first[domain].title), "source": first[domain].url}],
            "language": first[domain].language,
        }
        for domain in sorted(first)
    ]


def as_company(row: Row[Any]) -> Company:
    return Company(
        id=row.id,
        tenant_id=row.tenant_id,
        domain=row.domain,
        name=row.name,
        website_url=row.website_url,
        language=row.language,
        status=CompanyStatus(row.status),
        opt_out=row.opt_out,
        opt_out_reason=row.opt_out_reason,
        primary_id=row.primary_id,
        inn=row.inn,
        ogrn=row.ogrn,
        city=row.city,
        facts=tuple(Fact(**fact) for fact in row.facts),
        reason=row.reason,
        crawled_at=row.crawled_at,
        created_at=row.created_at,
    )
