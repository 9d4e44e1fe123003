"""Rotating the pepper, and the register of the secrets that unsubscribe links were signed with.

The register is in the audit log: from when on a secret signed letters is what the log is there to tell.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import (
    audit_log,
    campaign_letters,
    delivery_events,
    excluded_recipients,
    ledger,
    mailbox_messages,
    planned_jobs,
    subscribers,
    suppressions,
)
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.peppers import pepper_for_rotation
from sendonce.adapters.stores.sql.person_index import clear_shelves
from sendonce.domain.people.peppers import KEY_LENGTH, LINK_LENGTH, rekeyed
from sendonce.domain.people.privacy import ERASED

USED, FORGOTTEN = "unsubscribe key used", "unsubscribe key forgotten"
_KEYS = (
    suppressions.c.key,
    subscribers.c.suppression_key,
    planned_jobs.c.suppression_key,
    excluded_recipients.c.suppression_key,
)
_NAMES = (
    planned_jobs.c.recipient,
    planned_jobs.c.recipient_key,
    delivery_events.c.recipient,
    delivery_events.c.natural_key,
    audit_log.c.subject,
    campaign_letters.c.address_key,
    mailbox_messages.c.sender,
    mailbox_messages.c.recipient,
)


class SqlKeys:
    def __init__(self, database: Database) -> None:
        self._db = database

    def rotate(self, actor: str) -> int:
        link = os.urandom(LINK_LENGTH)
        with self._db.writing() as tx:
            pepper = pepper_for_rotation(self._db, tx) + link
            if self._db.is_sqlite:
                self._db.driver(tx).create_function("rekeyed", 1, lambda key: rekeyed(key, link))
            for column in _KEYS:
                tx.execute(column.table.update().values({column: self._rekeyed(column, link)}))
            for column in _NAMES:
                _rename(tx, column, self._rekeyed(sa.func.substr(column, len(ERASED) + 1), link))
            clear_shelves(tx)
            tx.execute(ledger.update().values(pepper=pepper))
            kept = tx.execute(sa.select(ledger.c.link_secrets)).scalar_one()
            if kept:
                tx.execute(ledger.update().values(link_secrets=kept + os.urandom(LINK_LENGTH)))
            count = tx.execute(sa.select(sa.func.count()).select_from(suppressions)).scalar_one()
            links = len(pepper) // LINK_LENGTH
            insert_audit(tx, self._db.now(tx), actor, "rotate keys", "pepper", {"links": links})
            return int(count)

    def _rekeyed(self, key: sa.ColumnElement[str], link: bytes) -> sa.ColumnElement[str]:
        """``peppers.rekeyed`` as SQL."""
        if self._db.is_sqlite:
            return sa.func.rekeyed(key)
        whole = sa.func.sha256(sa.literal(link, sa.LargeBinary).op("||")(sa.func.decode(key, "hex")))
        return sa.func.encode(sa.func.substr(whole, 1, KEY_LENGTH), "hex")

    # -- the secrets of unsubscribe links -----------------------------------------------------

    def link_secrets(self) -> Sequence[bytes]:
        with self._db.reading() as tx:
            kept = tx.execute(sa.select(ledger.c.link_secrets)).scalar_one()
        return _newest_first(kept or b"")

    def make_link_secret(self) -> bytes:
        with self._db.writing() as tx:
            # The condition is looked at under the row's lock: the second of two callers changes nothing.
            first = ledger.update().where(ledger.c.link_secrets.is_(None))
            tx.execute(first.values(link_secrets=os.urandom(LINK_LENGTH)))
            return _newest_first(tx.execute(sa.select(ledger.c.link_secrets)).scalar_one())[0]

    def note_used(self, fingerprint: str) -> None:
        if fingerprint not in self.used():
            with self._db.writing() as tx:
                insert_audit(tx, self._db.now(tx), "sendonce", USED, fingerprint, {})

    def used(self) -> Sequence[str]:
        with self._db.reading() as tx:
            return _used(tx)

    def forget(self, fingerprint: str, actor: str) -> bool:
        with self._db.writing() as tx:
            known = fingerprint in _used(tx)
            if known:
                insert_audit(tx, self._db.now(tx), actor, FORGOTTEN, fingerprint, {})
            return known


def _newest_first(kept: bytes) -> list[bytes]:
    return [kept[end - LINK_LENGTH : end] for end in range(len(kept), 0, -LINK_LENGTH)]


def _used(tx: Connection) -> list[str]:
    c = audit_log.c
    query = sa.select(c.action, c.subject).where(c.action.in_([USED, FORGOTTEN])).order_by(c.at, c.id)
    used: dict[str, None] = {}
    for action, fingerprint in tx.execute(query):
        if action == USED:
            used[fingerprint] = None
        else:
            used.pop(fingerprint, None)
    return list(used)


def _rename(tx: Connection, column: sa.Column[str], key: sa.ColumnElement[str]) -> None:
    """Only what stands in place of an address and is nothing but that."""
    whole = sa.and_(column.startswith(ERASED), sa.func.length(column) == len(ERASED) + 2 * KEY_LENGTH)
    tx.execute(column.table.update().where(whole).values({column: sa.literal(ERASED) + key}))
