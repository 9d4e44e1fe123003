"""Duplicates on SQL. Pairs are what is kept; who is a duplicate of whom is worked out from them each time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    companies,
    company_domains,
    company_marks,
    company_merges,
    company_queries,
    contacts,
    processing_jobs,
)
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.prospecting.companies import as_company
from sendonce.adapters.stores.sql.prospecting.tasks import add_task
from sendonce.adapters.stores.sql.prospecting.wishes import take_back_letters
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.audits import Alike, Listed
from sendonce.domain.prospecting.companies import Company, CompanyStatus
from sendonce.domain.prospecting.duplicates import (
    HUB,
    MOST_NAMESAKES,
    Bearer,
    Evidence,
    Judged,
    KnownPair,
    Pair,
    PairState,
    Standing,
    judge,
    standing_of,
    standings,
)
from sendonce.domain.prospecting.tasks import visit_task
from sendonce.domain.prospecting.written_letters import why_unfit

C = companies.c
M = company_merges.c
MARK = company_marks.c
K = contacts.c
_WRITTEN_TO = (C.status != CompanyStatus.DUPLICATE) & ~C.opt_out


def _primary_of(company_id: sa.ColumnElement[str]) -> sa.ScalarSelect[str]:
    one = companies.alias()
    primary = sa.func.coalesce(one.c.primary_id, one.c.id)
    return sa.select(primary).where(one.c.id == company_id).scalar_subquery()


# A pair that is nominated by one evidence and one already by another needs nobody's review.
_UNDECIDED = (M.state != PairState.NOMINATED) | (_primary_of(M.primary_id) != _primary_of(M.duplicate_id))
_OTHER_EVIDENCE = company_merges.alias()
# Several marks may tell the same of two companies: ИНН and ОГРН mostly come together. That is one pair.
_ONCE = ~sa.exists().where(
    _OTHER_EVIDENCE.c.primary_id == M.primary_id,
    _OTHER_EVIDENCE.c.duplicate_id == M.duplicate_id,
    _OTHER_EVIDENCE.c.state == M.state,
    _OTHER_EVIDENCE.c.id < M.id,
)
# Enough to tell a hub and a common name, and no more: a page of a parking service may have thousands.
_MOST_BEARERS = max(HUB, MOST_NAMESAKES) + 1


class SqlDuplicates:
    def __init__(self, database: Database) -> None:
        self._db = database

    def look_at(self, tenant_id: TenantId, company_id: str, now: datetime) -> Judged:
        with self._db.writing() as tx:
            self._one_at_a_time(tx, tenant_id)
            news = self._judge(tx, tenant_id, company_id)
            touched = {company_id, *(each for pair in news for each in pair.companies)}
            known = self._pairs_among(tx, list(touched)) if news else []
            parted = len({pair.companies for pair in news if self._write(tx, tenant_id, pair, now)})
            self._settle(tx, tenant_id, touched, now)
        merged = {pair.companies for pair in news if pair.state is PairState.MERGED}
        nominated = {pair.companies for pair in news} - merged
        already = {pair.companies for pair in known if pair.state is PairState.MERGED}
        return Judged(len(merged - already), len(nominated), parted)

    def _one_at_a_time(self, tx: Connection, tenant_id: TenantId) -> None:
        """Two workers that merge A with B and B with C must see each other's work. SQLite has one writer."""
        if not self._db.is_sqlite:
            tx.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"dedupe {tenant_id}"))))

    def _judge(self, tx: Connection, tenant_id: TenantId, company_id: str) -> list[Pair]:
        """What the company's marks say, its own domain included: others may have moved to it."""
        marks = sa.select(MARK.kind, MARK.value).where(MARK.company_id == company_id)
        own = sa.select(company_domains.c.domain).where(company_domains.c.company_id == company_id)
        shown = {(Evidence(kind), value) for kind, value in tx.execute(marks)}
        shown |= {(Evidence.REDIRECT, domain) for domain in tx.execute(own).scalars()}
        news: list[Pair] = []
        for evidence, value in sorted(shown):
            bearers = self._bearers(tx, tenant_id, evidence, value)
            if len(bearers) > 1:
                known = self._pairs_among(tx, [bearer.id for bearer in bearers])
                news += judge(evidence, value, bearers, known)
        return news

    def _bearers(self, tx: Connection, tenant_id: TenantId, evidence: Evidence, value: str) -> list[Bearer]:
        """The companies that show a mark, the first found first. A redirect's target is one of them."""
        showing = sa.select(MARK.company_id).where(
            MARK.tenant_id == tenant_id, MARK.kind == evidence, MARK.value == value
        )
        if evidence is Evidence.REDIRECT:
            at = (company_domains.c.tenant_id == tenant_id) & (company_domains.c.domain == value)
            showing = showing.union(sa.select(company_domains.c.company_id).where(at))  # type: ignore[assignment]
        query = sa.select(C.id, C.created_at).where(C.id.in_(showing)).order_by(C.created_at, C.id)
        return [Bearer(*row) for row in tx.execute(query.limit(_MOST_BEARERS))]

    def _pairs_among(self, tx: Connection, ids: Sequence[str]) -> list[Pair]:
        query = sa.select(company_merges).where(M.primary_id.in_(ids), M.duplicate_id.in_(ids))
        return [_as_pair(row) for row in tx.execute(query)]

    def _write(self, tx: Connection, tenant_id: TenantId, pair: Pair, now: datetime) -> bool:
        """Whether a merged pair was taken apart by it."""
        same = (
            (M.primary_id == pair.primary_id)
            & (M.duplicate_id == pair.duplicate_id)
            & (M.evidence == pair.evidence)
            & (M.value == pair.value)
        )
        before = tx.execute(sa.select(M.state).where(same)).scalar_one_or_none()
        if before is not None:
            tx.execute(company_merges.update().where(same).values(state=pair.state, updated_at=now))
            return bool(before == PairState.MERGED)
        row = {"id": new_id(now), "tenant_id": tenant_id, "created_at": now, "updated_at": now}
        told = {"evidence": pair.evidence, "value": pair.value, "state": pair.state, "actor": pair.actor}
        ids = {"primary_id": pair.primary_id, "duplicate_id": pair.duplicate_id}
        tx.execute(company_merges.insert().values(**row, **told, **ids))
        return False

    def _settle(self, tx: Connection, tenant_id: TenantId, touched: Iterable[str], now: datetime) -> None:
        """Make every company that the touched ones are connected with what its merged pairs say."""
        members, merged = self._connected(tx, touched)
        query = sa.select(companies).where(C.tenant_id == tenant_id, C.id.in_(members)).order_by(C.id)
        rows = {row.id: as_company(row) for row in tx.execute(query.with_for_update())}
        for company_id, standing in standings(rows.values(), merged).items():
            if standing != standing_of(rows[company_id]):
                self._stand(tx, rows[company_id], standing, now)

    def _connected(self, tx: Connection, touched: Iterable[str]) -> tuple[set[str], list[Pair]]:
        members: set[str] = set()
        merged: dict[str, Pair] = {}
        frontier = set(touched)
        while frontier:
            members |= frontier
            ends = M.primary_id.in_(frontier) | M.duplicate_id.in_(frontier)
            rows = tx.execute(sa.select(company_merges).where(ends, M.state == PairState.MERGED)).all()
            merged.update((row.id, _as_pair(row)) for row in rows)
            frontier = {end for row in rows for end in (row.primary_id, row.duplicate_id)} - members
        return members, list(merged.values())

    def _stand(self, tx: Connection, company: Company, standing: Standing, now: datetime) -> None:
        values = {
            "status": standing.status,
            "primary_id": standing.primary_id,
            "opt_out": standing.opt_out,
            "opt_out_reason": standing.opt_out_reason,
            "updated_at": now,
        }
        tx.execute(companies.update().where(C.id == company.id).values(values))
        if reason := why_unfit(standing.status, standing.opt_out, None):
            take_back_letters(self._db, tx, company.id, reason, now)
        visit = visit_task(company.tenant_id, company.id)
        if standing.primary_id is not None:
            self._share_searches(tx, company.id, standing.primary_id)
            J = processing_jobs.c  # noqa: N806 (columns are written so everywhere)
            waiting = (J.dedupe_key == visit.key) & (J.state == "waiting")
            tx.execute(processing_jobs.update().where(waiting).values(state="done", updated_at=now))
        elif standing.status is CompanyStatus.NEW and company.status is not CompanyStatus.NEW:
            add_task(tx, self._db, visit, now)

    def _share_searches(self, tx: Connection, duplicate_id: str, primary_id: str) -> None:
        """The primary was found by whatever found its duplicate."""
        q = company_queries.c
        columns = (q.company_id, q.query_id, q.created_at)
        theirs = sa.select(sa.literal(primary_id, C.id.type), q.query_id, q.created_at)
        insert = insert_for(self._db)(company_queries)
        shared = insert.from_select(columns, theirs.where(q.company_id == duplicate_id))
        tx.execute(shared.on_conflict_do_nothing())

    def pairs(
        self, tenant_id: TenantId, state: PairState, *, after: str = "", limit: int = 1000
    ) -> Sequence[KnownPair]:
        query = sa.select(company_merges).where(M.tenant_id == tenant_id, M.state == state, _UNDECIDED, _ONCE)
        if after:
            query = query.where(M.id > after)
        return self._known(query.order_by(M.id).limit(limit))

    def count(self, tenant_id: TenantId) -> Mapping[PairState, int]:
        query = sa.select(M.state, sa.func.count()).where(M.tenant_id == tenant_id, _UNDECIDED, _ONCE)
        query = query.group_by(M.state)
        with self._db.reading() as tx:
            return {PairState(row[0]): row[1] for row in tx.execute(query)}

    def pairs_of(self, tenant_id: TenantId, company_id: str) -> Sequence[KnownPair]:
        either = (M.primary_id == company_id) | (M.duplicate_id == company_id)
        return self._known(sa.select(company_merges).where(M.tenant_id == tenant_id, either).order_by(M.id))

    def _known(self, query: sa.Select[Any]) -> list[KnownPair]:
        with self._db.reading() as tx:
            rows = tx.execute(query).all()
            ids = {each for row in rows for each in (row.primary_id, row.duplicate_id)}
            known = {row.id: as_company(row) for row in tx.execute(sa.select(companies).where(C.id.in_(ids)))}
        return [
            KnownPair(
                row.id,
                known[row.primary_id],
                known[row.duplicate_id],
                Evidence(row.evidence),
                row.value,
                PairState(row.state),
                row.actor,
            )
            for row in rows
        ]

    def decide(self, tenant_id: TenantId, pair_id: str, *, one: bool, actor: str, now: datetime) -> bool:
        state = PairState.MERGED if one else PairState.REJECTED
        nominated = (M.tenant_id == tenant_id) & (M.id == pair_id) & (M.state == PairState.NOMINATED)
        with self._db.writing() as tx:
            self._one_at_a_time(tx, tenant_id)
            row = tx.execute(sa.select(company_merges).where(nominated)).one_or_none()
            if row is None:
                return False
            same = (M.primary_id == row.primary_id) & (M.duplicate_id == row.duplicate_id)
            asked = sa.select(company_merges).where(same, M.state == PairState.NOMINATED)
            self._say(tx, tx.execute(asked).all(), state, actor, now)
            self._settle(tx, tenant_id, (row.primary_id, row.duplicate_id), now)
        return True

    def undo(self, tenant_id: TenantId, company_id: str, actor: str, now: datetime) -> int:
        either = (M.primary_id == company_id) | (M.duplicate_id == company_id)
        merged = (M.tenant_id == tenant_id) & (M.state == PairState.MERGED) & either
        with self._db.writing() as tx:
            self._one_at_a_time(tx, tenant_id)
            rows = tx.execute(sa.select(company_merges).where(merged)).all()
            self._say(tx, rows, PairState.UNDONE, actor, now)
            touched = {company_id, *(each for row in rows for each in (row.primary_id, row.duplicate_id))}
            self._settle(tx, tenant_id, touched, now)
        return len({(row.primary_id, row.duplicate_id) for row in rows})

    def listed(self, tenant_id: TenantId) -> Sequence[Listed]:
        query = (
            sa.select(C.id, C.domain, K.value_key, K.freemail)
            .join_from(companies, contacts, K.company_id == C.id)
            .where(C.tenant_id == tenant_id, _WRITTEN_TO, K.kind == "email", K.is_primary)
            .order_by(C.id)
        )
        with self._db.reading() as tx:
            return [Listed(*row) for row in tx.execute(query)]

    def alike(self, tenant_id: TenantId, company_ids: Sequence[str]) -> Mapping[str, Sequence[Alike]]:
        other = company_marks.alias("other")
        same = (
            (other.c.tenant_id == tenant_id)
            & (other.c.kind == MARK.kind)
            & (other.c.value == MARK.value)
            & (other.c.company_id != MARK.company_id)
        )
        query = (
            sa.select(MARK.company_id, C.domain, MARK.kind, MARK.value)
            .join_from(company_marks, other, same)
            .join(companies, other.c.company_id == C.id)
            .where(MARK.company_id.in_(company_ids), _WRITTEN_TO)
        )
        found: defaultdict[str, list[Alike]] = defaultdict(list)
        with self._db.reading() as tx:
            for company_id, domain, kind, value in tx.execute(query):
                found[company_id].append(Alike(domain, Evidence(kind), value))
        return found

    def _say(
        self, tx: Connection, rows: Sequence[Row[Any]], state: PairState, actor: str, now: datetime
    ) -> None:
        """A person's word, with who said it."""
        told = {"state": state, "actor": actor, "updated_at": now}
        for row in rows:
            tx.execute(company_merges.update().where(M.id == row.id).values(told))
            details = {"state": state, "evidence": row.evidence, "value": row.value}
            insert_audit(tx, now, actor, "judge companies", f"{row.primary_id} {row.duplicate_id}", details)


def _as_pair(row: Row[Any]) -> Pair:
    return Pair(
        row.primary_id,
        row.duplicate_id,
        Evidence(row.evidence),
        row.value,
        PairState(row.state),
        row.actor,
    )
