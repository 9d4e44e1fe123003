"""Who receives events, on SQL."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import event_receivers, event_topics
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.engine.event_route import Listening, Receiver, longest_silence

R = event_receivers.c
T = event_topics.c

# Longer than doubts wait for their events.
_KEPT = timedelta(days=7)


class SqlEventRoute:
    def __init__(self, database: Database) -> None:
        self._db = database

    def attend(self, receiver: str, *, durable: bool, anew: bool = False) -> None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            if anew:
                self._drop_instant(tx, receiver)
            elif self._prolong(tx, receiver, now, longest_silence(durable=durable)):
                return
            tx.execute(event_receivers.delete().where(R.seen < now - _KEPT))
            row = {"receiver": receiver, "since": now, "seen": now, "durable": durable}
            tx.execute(event_receivers.insert().values(id=new_id(now), **row))

    def _prolong(self, tx: Connection, receiver: str, now: datetime, silence: timedelta) -> bool:
        last = sa.select(sa.func.max(R.since)).where(R.receiver == receiver).scalar_subquery()
        own = (R.receiver == receiver) & (R.since == last) & (R.seen >= now - silence) & ~R.left
        return bool(tx.execute(event_receivers.update().where(own).values(seen=now)).rowcount)

    def _drop_instant(self, tx: Connection, receiver: str) -> None:
        """A row of one note covers no time; an outage of hours would leave thousands of them."""
        tx.execute(event_receivers.delete().where(R.receiver == receiver, R.since == R.seen))

    def leave(self, receiver: str) -> None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            last = sa.select(sa.func.max(R.since)).where(R.receiver == receiver).scalar_subquery()
            own = (R.receiver == receiver) & (R.since == last)
            silence = longest_silence(durable=False)
            tx.execute(
                event_receivers.update().where(own, R.seen >= now - silence).values(left=True, seen=now)
            )

    def listening(self) -> Listening:
        columns = (R.receiver, R.since, R.seen, R.durable, R.left)
        with self._db.reading() as tx:
            now = self._db.now(tx)
            rows = tx.execute(sa.select(*columns).where(R.seen >= now - _KEPT)).all()
            return Listening([Receiver(*row) for row in rows], now)

    def subscribed(self, topic: str) -> None:
        with self._db.writing() as tx:
            insert = insert_for(self._db)(event_topics).values(topic=topic, subscribed_at=self._db.now(tx))
            again = insert.on_conflict_do_update(index_elements=[T.topic], set_={"ended_at": None})
            tx.execute(again)

    def unsubscribed(self, topic: str) -> None:
        with self._db.writing() as tx:
            tx.execute(event_topics.update().where(T.topic == topic).values(ended_at=self._db.now(tx)))

    def is_subscribed(self, topics: Collection[str]) -> bool:
        query = sa.select(T.topic).where(T.topic.in_(list(topics)), T.ended_at.is_(None)).limit(1)
        with self._db.reading() as tx:
            return tx.execute(query).first() is not None
