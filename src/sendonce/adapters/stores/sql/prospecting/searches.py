"""Queries on SQL: what people ask for, and how far it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import directions, serp_operations, serp_queries
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.adapters.stores.sql.subscribers import require_tenant
from sendonce.domain.engine.ids import prefix_range, time_ordered_ids
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.searches import (
    RETRIED_BY_WORD,
    AddedSearch,
    OperationState,
    Region,
    SearchQuery,
    SearchTally,
    SearchWish,
    request_hash,
)
from sendonce.errors import NotFound

Q, O = serp_queries.c, serp_operations.c  # noqa: E741

# Rows of one INSERT: SQLite takes 32,766 values.
_ROWS = 1_000
_IN_TIME = timedelta(hours=12)


class SqlSearches:
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, tenant_id: TenantId, wishes: Sequence[SearchWish], now: datetime) -> Sequence[AddedSearch]:
        wanted: dict[str, SearchWish] = {}
        for wish in wishes:
            known = wanted.get(wish.hash)
            if known is None or known.pages < wish.pages:
                wanted[wish.hash] = wish
        new_pages: dict[str, int] = {}
        with self._db.writing() as tx:
            require_tenant(tx, tenant_id)
            _require_directions(tx, tenant_id, {wish.direction_id for wish in wishes})
            ids = self._put_queries(tx, tenant_id, wanted, now)
            for query_id in self._put_operations(tx, tenant_id, wanted, ids, now):
                new_pages[query_id] = new_pages.get(query_id, 0) + 1
            queries = {query.id: query for query in _queries(tx, tenant_id, list(ids.values()))}
        # A wish that comes twice has asked for new pages once.
        return [AddedSearch(queries[ids[wish.hash]], new_pages.pop(ids[wish.hash], 0)) for wish in wishes]

    def _put_queries(
        self, tx: Connection, tenant_id: TenantId, wanted: Mapping[str, SearchWish], now: datetime
    ) -> dict[str, str]:
        """The id of each query, by its hash."""
        fresh = time_ordered_ids(len(wanted), int(now.timestamp() * 1000))
        rows = [
            {
                "id": new_id,
                "tenant_id": tenant_id,
                "direction_id": wish.direction_id,
                "text": wish.text,
                "region": wish.region.name,
                "region_code": wish.region.code,
                "pages": wish.pages,
                "query_hash": key,
                "created_at": now,
                "updated_at": now,
            }
            for new_id, (key, wish) in zip(fresh, wanted.items(), strict=True)
        ]
        ids: dict[str, str] = {}
        for some in _chunks(rows):
            insert = insert_for(self._db)(serp_queries).values(some)
            pages = sa.case((insert.excluded.pages > Q.pages, insert.excluded.pages), else_=Q.pages)
            put = insert.on_conflict_do_update(
                index_elements=["tenant_id", "query_hash"], set_={"pages": pages, "updated_at": now}
            )
            ids.update({row.query_hash: row.id for row in tx.execute(put.returning(Q.id, Q.query_hash))})
        return ids

    def _put_operations(
        self,
        tx: Connection,
        tenant_id: TenantId,
        wanted: Mapping[str, SearchWish],
        ids: Mapping[str, str],
        now: datetime,
    ) -> Iterable[str]:
        """The query of each request that was not there before."""
        pages = [(key, page) for key, wish in wanted.items() for page in range(wish.pages)]
        fresh = time_ordered_ids(len(pages), int(now.timestamp() * 1000))
        rows = [
            {
                "id": new_id,
                "tenant_id": tenant_id,
                "query_id": ids[key],
                "page": page,
                "request_hash": request_hash(tenant_id, key, page),
                "due_at": now,
                "created_at": now,
                "updated_at": now,
            }
            for new_id, (key, page) in zip(fresh, pages, strict=True)
        ]
        for some in _chunks(rows):
            insert = insert_for(self._db)(serp_operations).values(some)
            put = insert.on_conflict_do_nothing(index_elements=["query_id", "page"])
            yield from tx.execute(put.returning(O.query_id)).scalars()

    def all(self, tenant_id: TenantId, limit: int = 100) -> Sequence[SearchQuery]:
        newest = sa.select(Q.id).where(Q.tenant_id == tenant_id).order_by(Q.id.desc()).limit(limit)
        with self._db.reading() as tx:
            return _queries(tx, tenant_id, list(tx.execute(newest).scalars()))

    def tally(self, tenant_id: TenantId) -> SearchTally:
        queries = sa.select(sa.func.count()).select_from(serp_queries).where(Q.tenant_id == tenant_id)
        by_state = sa.select(O.state, sa.func.count(), sa.func.sum(O.results))
        in_time = self._seconds_until(O.submitted_at, O.settled_at) <= _IN_TIME.total_seconds()
        answered = sa.select(sa.func.count(), sa.func.sum(sa.case((in_time, 1), else_=0)))
        own = O.tenant_id == tenant_id
        with self._db.reading() as tx:
            states = tx.execute(by_state.where(own).group_by(O.state)).all()
            count, quick = tx.execute(answered.where(own, O.state == OperationState.DONE)).one()
            return SearchTally(
                queries=tx.execute(queries).scalar_one(),
                operations={OperationState(state): number for state, number, _ in states},
                results=sum(results or 0 for _, _, results in states),
                answered=count,
                in_time=quick or 0,
            )

    def _seconds_until(self, start: Any, end: Any) -> sa.ColumnElement[float]:
        if self._db.is_sqlite:
            return (sa.func.julianday(end) - sa.func.julianday(start)) * 86_400.0
        return sa.cast(sa.extract("epoch", end - start), sa.Float)

    def retry(self, tenant_id: TenantId, query_id: str, now: datetime, actor: str) -> int:
        with self._db.writing() as tx:
            own = (Q.tenant_id == tenant_id) & (Q.id == query_id)
            if tx.execute(sa.select(Q.id).where(own)).first() is None:
                raise NotFound(f"There is no search {query_id}: 'sendonce search list' shows those that are.")
            ended = (O.query_id == query_id) & O.state.in_(RETRIED_BY_WORD)
            again = {"due_at": now, "losses": 0, "failures": 0, "settled_at": None, "updated_at": now}
            queued = serp_operations.update().where(ended).values(state=OperationState.QUEUED, **again)
            count: int = tx.execute(queued).rowcount
            insert_audit(tx, now, actor, "retry_search", query_id, {"requests": count})
            return count

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        named = sa.select(Q.id).where(Q.tenant_id == tenant_id, Q.id.between(first, last))
        with self._db.reading() as tx:
            return list(tx.execute(named.order_by(Q.id).limit(limit)).scalars())


def _require_directions(tx: Connection, tenant_id: TenantId, wanted: set[str | None]) -> None:
    names = {name for name in wanted if name is not None}
    own = (directions.c.tenant_id == tenant_id) & directions.c.id.in_(names)
    known = set(tx.execute(sa.select(directions.c.id).where(own)).scalars())
    for missing in sorted(names - known):
        raise NotFound(f"There is no direction '{missing}': add it with 'sendonce direction add' first.")


def _queries(tx: Connection, tenant_id: TenantId, ids: Sequence[str]) -> list[SearchQuery]:
    """In the order of the ids."""
    found: dict[str, SearchQuery] = {}
    for some in _chunks(ids):
        own = sa.select(serp_queries).where(Q.tenant_id == tenant_id, Q.id.in_(some))
        counted = sa.select(
            O.query_id,
            O.state,
            sa.func.count().label("count"),
            sa.func.sum(O.results).label("results"),
            sa.func.max(O.reason).label("reason"),
        ).where(O.query_id.in_(some))
        by_query: dict[str, list[Row[Any]]] = defaultdict(list)
        for row in tx.execute(counted.group_by(O.query_id, O.state)):
            by_query[row.query_id].append(row)
        found.update({row.id: _as_query(row, by_query[row.id]) for row in tx.execute(own)})
    return [found[each] for each in ids]


def _as_query(row: Row[Any], states: Sequence[Row[Any]]) -> SearchQuery:
    return SearchQuery(
        id=row.id,
        tenant_id=row.tenant_id,
        direction_id=row.direction_id,
        text=row.text,
        region=Region(row.region_code, row.region),
        pages=row.pages,
        created_at=row.created_at,
        states={OperationState(it.state): it._mapping["count"] for it in states},
        results=sum(it.results or 0 for it in states),
        reason=next((it.reason for it in states if it.reason and it.state != OperationState.DONE), None),
    )


def _chunks(rows: Sequence[Any]) -> Iterable[Any]:
    return (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))
