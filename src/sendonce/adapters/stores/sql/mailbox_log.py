"""What was found in mailboxes, on SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    dispatches,
    mailbox_cursors,
    mailbox_messages,
    mailbox_readings,
    planned_jobs,
)
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for, insert_outbox
from sendonce.domain.engine.ids import time_ordered_ids
from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.engine.mailbox.found import (
    FoundMail,
    MailboxReading,
    MailCursor,
    answer_body,
    answered_topic,
    sum_of_kinds,
)

C = mailbox_cursors.c
D = dispatches.c
J = planned_jobs.c
M = mailbox_messages.c
R = mailbox_readings.c


class SqlMailboxLog:
    def __init__(self, database: Database) -> None:
        self._db = database

    def cursor(self, mailbox: str, folder: str) -> MailCursor | None:
        query = sa.select(C.uid_validity, C.last_uid).where(C.mailbox == mailbox, C.folder == folder)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
        return MailCursor(row.uid_validity, row.last_uid) if row is not None else None

    def known(self, mailbox: str, keys: Collection[str]) -> set[str]:
        query = sa.select(M.message_key).where(M.mailbox == mailbox, M.message_key.in_(list(keys)))
        with self._db.reading() as tx:
            return set(tx.execute(query).scalars())

    def keep(
        self,
        mailbox: str,
        folder: str,
        cursor: MailCursor,
        found: Sequence[FoundMail],
        doors: Collection[str] = (),
    ) -> int:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            ids = time_ordered_ids(len(found), int(now.timestamp() * 1000))
            rows = [{**_values(mail), "id": own_id} for own_id, mail in zip(ids, found, strict=True)]
            common = {"mailbox": mailbox, "found_at": now}
            new = [mail for mail, row in zip(found, rows, strict=True) if self._insert(tx, {**row, **common})]
            for mail in new:
                _tell_door(tx, mail, doors, now)
            self._move(tx, mailbox, folder, cursor, now)
            return len(new)

    def _insert(self, tx: Connection, row: dict[str, Any]) -> bool:
        insert = insert_for(self._db)(mailbox_messages).values(row).on_conflict_do_nothing()
        return tx.execute(insert.returning(M.id)).first() is not None

    def _move(self, tx: Connection, mailbox: str, folder: str, cursor: MailCursor, now: datetime) -> None:
        place = {"mailbox": mailbox, "folder": folder}
        there = {"uid_validity": cursor.uid_validity, "last_uid": cursor.last_uid, "read_at": now}
        insert = insert_for(self._db)(mailbox_cursors).values(**place, **there)
        onward = sa.or_(C.uid_validity != cursor.uid_validity, C.last_uid <= cursor.last_uid)
        tx.execute(insert.on_conflict_do_update(index_elements=list(place), set_=there, where=onward))

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[FoundMail]:
        query = sa.select(mailbox_messages).order_by(M.found_at.desc(), M.id.desc()).limit(limit)
        if job_id is not None:
            query = query.where(M.job_id == job_id)
        with self._db.reading() as tx:
            return [_as_mail(row) for row in tx.execute(query)]

    def note_read(self, mailbox: str, found: Mapping[str, int]) -> None:
        with self._db.writing() as tx:
            own = sa.select(R.found).where(R.mailbox == mailbox).with_for_update()
            before = tx.execute(own).scalar_one_or_none() or {}
            now = {"read_at": self._db.now(tx), "found": sum_of_kinds(before, found)}
            self._note(tx, mailbox, {**now, "failed_at": None, "trouble": None})

    def note_trouble(self, mailbox: str, trouble: str) -> None:
        with self._db.writing() as tx:
            self._note(tx, mailbox, {"failed_at": self._db.now(tx), "trouble": trouble})

    def _note(self, tx: Connection, mailbox: str, noted: dict[str, Any]) -> None:
        insert = insert_for(self._db)(mailbox_readings).values({"mailbox": mailbox, "found": {}, **noted})
        tx.execute(insert.on_conflict_do_update(index_elements=["mailbox"], set_=noted))

    def readings(self) -> Sequence[MailboxReading]:
        query = sa.select(mailbox_readings).order_by(R.mailbox)
        with self._db.reading() as tx:
            return [MailboxReading(**row._mapping) for row in tx.execute(query)]


def _tell_door(tx: Connection, mail: FoundMail, doors: Collection[str], now: datetime) -> None:
    if mail.job_id is None or not doors:
        return
    owner = sa.select(D.id, D.kind, D.owner_id).join(planned_jobs, J.dispatch_id == D.id)
    row = tx.execute(owner.where(J.id == mail.job_id, D.kind.in_(list(doors)))).one_or_none()
    if row is not None:
        insert_outbox(tx, now, answered_topic(row.kind), answer_body(mail, row.id, row.owner_id))


def _values(mail: FoundMail) -> dict[str, Any]:
    values = asdict(mail)
    values["message_key"] = values.pop("key")
    return values


def _as_mail(row: Row[Any]) -> FoundMail:
    return FoundMail(
        key=row.message_key,
        kind=MailKind(row.kind),
        job_id=row.job_id,
        sender=row.sender,
        recipient=row.recipient,
        bounce=row.bounce,
        code=row.code,
        reason=row.reason,
        sent_at=row.sent_at,
        found_at=row.found_at,
    )
