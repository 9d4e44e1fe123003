"""Held senders on SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import sender_holds
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.engine.senders import (
    BY_HAND,
    ENGINE,
    PROBE_WITHIN,
    UNTIL_RELEASED,
    HoldOrder,
    SenderHold,
)

H = sender_holds.c


class SqlSenderHolds:
    def __init__(self, database: Database) -> None:
        self._db = database

    def hold(self, key: str, order: HoldOrder) -> SenderHold:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            said = {
                "code": order.code,
                "reason": order.reason,
                "next_try_at": now + timedelta(seconds=order.seconds),
                "elsewhere": order.elsewhere,
            }
            first = insert_for(self._db)(sender_holds).values(key=key, held_at=now, tries=1, **said)
            again = first.on_conflict_do_update(
                index_elements=["key"], set_={**said, "tries": H.tries + 1}, where=H.code != BY_HAND
            )
            written = tx.execute(again if order.probe else first.on_conflict_do_nothing()).rowcount
            if written and order.elsewhere:
                insert_audit(tx, now, ENGINE, "fail_over", key, {"code": order.code, "reason": order.reason})
            return _as_hold(tx.execute(sa.select(sender_holds).where(H.key == key)).one())

    def hold_by_hand(
        self, key: str, reason: str, until: datetime | None, actor: str, *, elsewhere: bool = False
    ) -> SenderHold:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            hold = SenderHold(key, BY_HAND, reason, now, until or UNTIL_RELEASED, 1, elsewhere)
            values = asdict(hold)
            put = insert_for(self._db)(sender_holds).values(values)
            tx.execute(put.on_conflict_do_update(index_elements=["key"], set_=values))
            details = {"reason": reason, "until": until.isoformat() if until else None}
            insert_audit(tx, now, actor, "fail_over" if elsewhere else "hold_sender", key, details)
            return hold

    def end(self, hold: SenderHold) -> bool:
        own = sender_holds.delete().where(H.key == hold.key, H.held_at == hold.held_at)
        with self._db.writing() as tx:
            ended = tx.execute(own).rowcount > 0
            if ended and hold.elsewhere:
                insert_audit(tx, self._db.now(tx), ENGINE, "fail_back", hold.key, {"code": hold.code})
            return ended

    def release(self, key: str, actor: str) -> bool:
        with self._db.writing() as tx:
            hold = lock_hold(tx, key)
            if hold is None:
                return False
            tx.execute(sender_holds.delete().where(H.key == key))
            details = {"code": hold.code, "reason": hold.reason, "held_at": hold.held_at.isoformat()}
            insert_audit(tx, self._db.now(tx), actor, "release_sender", key, details)
            return True

    def get(self, key: str) -> SenderHold | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(sender_holds).where(H.key == key)).one_or_none()
            return _as_hold(row) if row else None

    def all(self) -> Sequence[SenderHold]:
        with self._db.reading() as tx:
            return [_as_hold(row) for row in tx.execute(sa.select(sender_holds).order_by(H.key))]


def lock_hold(tx: Connection, key: str) -> SenderHold | None:
    """The hold, which nobody else tries or ends before this transaction is over."""
    row = tx.execute(sa.select(sender_holds).where(H.key == key).with_for_update()).one_or_none()
    return _as_hold(row) if row else None


def put_off_probes(tx: Connection, hold: SenderHold, now: datetime) -> None:
    later = now + timedelta(seconds=PROBE_WITHIN)
    tx.execute(sender_holds.update().where(H.key == hold.key).values(next_try_at=later))


def _as_hold(row: Row[Any]) -> SenderHold:
    return SenderHold(row.key, row.code, row.reason, row.held_at, row.next_try_at, row.tries, row.elsewhere)
