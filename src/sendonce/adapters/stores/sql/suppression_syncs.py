"""How far our suppressions and a provider's list know each other, on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from sendonce.adapters.stores.schema import suppression_syncs, suppressions
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import pepper_in_force
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.adapters.stores.sql.suppressions import as_suppression
from sendonce.domain.engine.addresses import Address
from sendonce.domain.people.provider_lists import SHARED, SyncCursor
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import Suppression

S = suppressions.c
C = suppression_syncs.c
# As the index says it: only then SQLite uses it.
_SHARED = sa.text("reason IN ('bounce', 'complaint') AND address IS NOT NULL")


class SqlSuppressionSyncs:
    def __init__(self, database: Database) -> None:
        self._db = database

    def cursor(self, provider: str) -> SyncCursor:
        query = sa.select(C.theirs_from, C.ours_from, C.ours_key).where(C.provider == provider)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return SyncCursor(*row) if row else SyncCursor()

    def move(self, provider: str, cursor: SyncCursor) -> None:
        values = cursor._asdict()
        put = insert_for(self._db)(suppression_syncs).values(provider=provider, **values)
        with self._db.writing() as tx:
            tx.execute(put.on_conflict_do_update(index_elements=["provider"], set_=values))

    def unknown(self, addresses: Sequence[Address]) -> set[str]:
        with self._db.reading() as tx:
            pepper = pepper_in_force(self._db, tx)
            ours = {suppression_key(address.key, pepper): address.key for address in addresses}
            found = sa.select(S.key).where(S.key.in_(list(ours)), S.reason.in_(SHARED))
            known = set(tx.execute(found).scalars())
        return {address_key for key, address_key in ours.items() if key not in known}

    def told_next(self, cursor: SyncCursor, before: datetime, limit: int) -> Sequence[Suppression]:
        query = sa.select(suppressions).where(_SHARED, S.created_at < before)
        if cursor.ours_from is not None:
            after = sa.and_(S.created_at == cursor.ours_from, S.key > cursor.ours_key)
            query = query.where(S.created_at >= cursor.ours_from)
            query = query.where(sa.or_(S.created_at > cursor.ours_from, after))
        with self._db.reading() as tx:
            found = tx.execute(query.order_by(S.created_at, S.key).limit(limit))
            return [as_suppression(row) for row in found]
