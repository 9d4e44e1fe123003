"""The audit log on SQL.

Entries are written as the last thing before their transaction commits. On PostgreSQL that is done under a
lock, so that each finds the one before it; nothing else is waited for while the lock is held, so it can be
part of no deadlock. SQLite has one writer at a time anyway.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import audit_log
from sendonce.adapters.stores.sql.database import Database, before_commit
from sendonce.domain.engine.ids import time_ordered_id
from sendonce.domain.people.audit import FIRST, AuditEntry, digest_of, hash_of

C = audit_log.c
_LOCK = 0x61756469
_PAGE = 5000


def insert_audit(
    tx: Connection, now: datetime, actor: str, action: str, subject: str, details: dict[str, Any]
) -> None:
    told = {"at": now, "actor": actor, "action": action, "subject": subject, "details": details}
    entry_id = time_ordered_id(int(now.timestamp() * 1000))
    before_commit(tx, _write, {"id": entry_id, **told})


def _write(tx: Connection, entries: list[dict[str, Any]]) -> None:
    if tx.dialect.name == "postgresql":
        tx.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    newest = sa.select(C.number, C.hash).where(C.number.is_not(None)).order_by(C.number.desc()).limit(1)
    number, former = tx.execute(newest).one_or_none() or (0, FIRST)
    for entry in entries:
        number += 1
        salt = secrets.token_hex(16)
        digest = digest_of(salt, entry["actor"], entry["action"], entry["subject"], entry["details"])
        former = hash_of(former, number, entry["id"], entry["at"], digest)
        entry |= {"number": number, "salt": salt, "digest": digest, "hash": former}
    tx.execute(audit_log.insert(), entries)


class SqlAuditLog:
    def __init__(self, database: Database) -> None:
        self._db = database

    def entries(self) -> Iterator[AuditEntry]:
        with self._db.reading() as tx:
            yield from map(_as_entry, tx.execute(sa.select(audit_log).where(C.number.is_(None))))
        after = 0
        query = sa.select(audit_log).order_by(C.number).limit(_PAGE)
        while True:
            with self._db.reading() as tx:
                page = [_as_entry(row) for row in tx.execute(query.where(C.number > after))]
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].number or 0

    def all(self, limit: int = 100) -> list[AuditEntry]:
        query = sa.select(audit_log).order_by(C.at.desc(), C.id.desc()).limit(limit)
        with self._db.reading() as tx:
            return [_as_entry(row) for row in tx.execute(query)]


def _as_entry(row: Any) -> AuditEntry:
    return AuditEntry(**{name: getattr(row, name) for name in AuditEntry.__slots__})
