"""Who receives events, on SQL."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from sendonce.adapters.stores.schema import event_receivers
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import new_id
from sendonce.domain.event_route import SILENT_AFTER, Receiver, RouteWatch, watch

R = event_receivers.c

# Longer than any doubt waits for its events.
_KEPT = timedelta(days=30)


class SqlEventRoute:
    def __init__(self, database: Database) -> None:
        self._db = database

    def attend(self, receiver: str, *, durable: bool) -> None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            own = event_receivers.update().where(R.receiver == receiver, R.seen >= now - SILENT_AFTER)
            if tx.execute(own.values(seen=now)).rowcount:
                return
            tx.execute(event_receivers.delete().where(R.seen < now - _KEPT))
            stretch = {"receiver": receiver, "since": now, "seen": now, "durable": durable}
            tx.execute(event_receivers.insert().values(id=new_id(now), **stretch))

    def watch(self) -> RouteWatch | None:
        with self._db.reading() as tx:
            rows = tx.execute(sa.select(R.since, R.seen, R.durable)).all()
            return watch([Receiver(*row) for row in rows], self._db.now(tx))
