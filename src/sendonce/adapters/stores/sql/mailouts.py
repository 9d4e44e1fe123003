"""Mailouts on SQL: started once, and planned in chunks as jobs of their dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import dispatches, excluded_recipients, letters, mailouts, planned_jobs
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.dispatches import CLAIMABLE, as_dispatch, insert_dispatch, lock_dispatch
from sendonce.adapters.stores.sql.exclusions import count_excluded
from sendonce.adapters.stores.sql.letters import as_letter, insert_letter
from sendonce.adapters.stores.sql.planning import SqlPlanning
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.engine.dispatches import NewDispatch
from sendonce.domain.engine.ids import prefix_range
from sendonce.domain.engine.letters import Letter
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.mailouts import (
    KIND,
    Mailout,
    MailoutStatus,
    NewMailout,
    PageEvent,
    Phase,
    PlanProgress,
)
from sendonce.errors import NotFound

D = dispatches.c
M = mailouts.c
J = planned_jobs.c
# Deliveries, bounces and complaints come in for days after the last letter.
REPORTED_FOR = timedelta(days=7)
UNSTARTED = (MailoutStatus.DRAFT, MailoutStatus.READY)


class SqlMailouts:
    def __init__(self, database: Database) -> None:
        self._db = database
        self._planning = SqlPlanning(database)

    def create(self, tenant_id: TenantId, new: NewMailout) -> Mailout:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            letter_id = insert_letter(tx, tenant_id, new.letter, now) if new.letter else None
            values: dict[str, Any] = {
                "id": new_id(now),
                "tenant_id": tenant_id,
                "letter_id": letter_id,
                "name": new.name,
                "source": new.source,
                "source_id": new.source_id,
                "is_test": new.is_test,
                "audience": list(new.audience) if new.audience is not None else sa.null(),
                "warnings": list(new.warnings),
                "status": MailoutStatus.DRAFT if new.draft else MailoutStatus.READY,
                "send_at": new.send_at,
                "created_at": now,
                "updated_at": now,
            }
            insert = insert_for(self._db)(mailouts).values(**values).on_conflict_do_nothing()
            inserted = tx.execute(insert.returning(M.id)).first() is not None
            if inserted:
                own = NewDispatch(KIND, values["id"], letter_id, new.sender_id, new.is_test)
                insert_dispatch(tx, values["id"], tenant_id, own, now, phase="preparing")
        if inserted or new.source_id is None:
            mailout = self.get(tenant_id, values["id"])
        else:
            mailout = self.of_page(tenant_id, new.source, new.source_id)
        assert mailout is not None
        return mailout

    def of_page(self, tenant_id: TenantId, source: str, source_id: str) -> Mailout | None:
        own = (M.tenant_id == tenant_id) & (M.source == source) & (M.source_id == source_id) & ~M.is_test
        return next(iter(self._find(_MAILOUTS.where(own))), None)

    def get(self, tenant_id: TenantId, mailout_id: str) -> Mailout | None:
        own = (M.id == mailout_id) & (M.tenant_id == tenant_id)
        return next(iter(self._find(_MAILOUTS.where(own))), None)

    def letter(self, mailout_id: str) -> Letter:
        query = sa.select(letters).join(mailouts, M.letter_id == letters.c.id).where(M.id == mailout_id)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
        if row is None:
            raise NotFound(f"There is no mailout {mailout_id}: 'sendonce mailout list' shows what there is.")
        return as_letter(row)

    def all(self, tenant_id: TenantId, limit: int = 100) -> Sequence[Mailout]:
        return self._find(_NEWEST_FIRST.where(M.tenant_id == tenant_id).limit(limit))

    def of_all_tenants(self, limit: int = 100) -> Sequence[Mailout]:
        return self._find(_NEWEST_FIRST.limit(limit))

    def with_status(self, status: MailoutStatus) -> Sequence[Mailout]:
        return self._find(_MAILOUTS.where(_HAS_STATUS[status]).order_by(M.id))

    def being_prepared(self) -> Sequence[Mailout]:
        early = D.phase.in_(["preparing", "planning"]) & (D.phase != sa.literal_column("'over'"))
        return self._find(_MAILOUTS.where(early, D.started_at.is_not(None)).order_by(M.id))

    def running(self) -> int:
        with self._db.reading() as tx:
            query = sa.select(sa.func.count()).select_from(dispatches).where(CLAIMABLE, D.kind == KIND)
            return tx.execute(query).scalar_one()

    def _find(self, query: sa.Select[Any]) -> list[Mailout]:
        with self._db.reading() as tx:
            return [_as_mailout(row) for row in tx.execute(query)]

    def _lock(self, tx: Connection, mailout_id: str, *statuses: MailoutStatus) -> Mailout | None:
        """The mailout as it is once it is ours to change, if it has one of these statuses.

        Its dispatch is locked first, as a planner does: or else the two would wait for each other.
        """
        lock_dispatch(tx, mailout_id)
        locked = _MAILOUTS.where(M.id == mailout_id).with_for_update(key_share=True)
        row = tx.execute(locked).one_or_none()
        mailout = _as_mailout(row) if row else None
        return mailout if mailout is not None and mailout.status in (statuses or MailoutStatus) else None

    def _change(self, tx: Connection, mailout_id: str, now: datetime, **changes: Any) -> bool:
        tx.execute(mailouts.update().where(M.id == mailout_id).values(**changes, updated_at=now))
        return True

    def replace_letter(self, mailout_id: str, new: NewMailout) -> bool:
        assert new.letter is not None
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id, *UNSTARTED)
            if mailout is None or mailout.source_id is not None:
                return False
            letter_id = insert_letter(tx, mailout.tenant_id, new.letter, now)
            self._set_letter(tx, mailout_id, letter_id)
            tx.execute(letters.delete().where(letters.c.id == mailout.letter_id))
            return self._change(
                tx,
                mailout_id,
                now,
                name=new.name,
                warnings=list(new.warnings),
                send_at=mailout.send_at if mailout.scheduled else new.send_at,
                reason=None,
            )

    def _set_letter(self, tx: Connection, mailout_id: str, letter_id: str | None) -> None:
        tx.execute(mailouts.update().where(M.id == mailout_id).values(letter_id=letter_id))
        tx.execute(dispatches.update().where(D.id == mailout_id).values(letter_id=letter_id))

    def delete(self, mailout_id: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id, *UNSTARTED)
            if mailout is None:
                return False
            tx.execute(excluded_recipients.delete().where(excluded_recipients.c.mailout_id == mailout_id))
            tx.execute(mailouts.delete().where(M.id == mailout_id))
            tx.execute(dispatches.delete().where(D.id == mailout_id))
            tx.execute(letters.delete().where(letters.c.id == mailout.letter_id))
            insert_audit(tx, now, "operator", "delete", mailout_id, {"name": mailout.name})
            return True

    def twins(self, tenant_id: TenantId, letter: Letter) -> Sequence[Mailout]:
        same = sa.and_(
            letters.c.subject == letter.subject, letters.c.html == letter.html, letters.c.text == letter.text
        )
        went_out = sa.and_(M.tenant_id == tenant_id, D.started_at.is_not(None), ~M.is_test)
        query = _MAILOUTS.join(letters, M.letter_id == letters.c.id).where(went_out, same)
        return self._find(query.order_by(D.started_at.desc(), M.id.desc()))

    def count_excluded(self, tenant_id: str, except_of: Sequence[str]) -> int:
        with self._db.reading() as tx:
            return count_excluded(tx, tenant_id, list(except_of))

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        own = M.id.between(*prefix_range(prefix)) & (M.tenant_id == tenant_id)
        with self._db.reading() as tx:
            return list(tx.execute(sa.select(M.id).where(own).order_by(M.id).limit(limit)).scalars())

    # -- starting and planning -----------------------------------------------------------------

    def make_ready(self, mailout_id: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            if self._lock(tx, mailout_id, MailoutStatus.DRAFT) is None:
                return False
            return self._change(tx, mailout_id, now, status="ready")

    def start(
        self,
        mailout_id: str,
        event: PageEvent | None = None,
        *,
        except_of: Sequence[str] | None = None,
        forced: bool = False,
        checked: Mailout | None = None,
    ) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id, MailoutStatus.READY)
            if mailout is None or not mailout.is_still(checked):
                return False
            if event is not None and not event.is_news_to(mailout.page_event):
                return False
            phase = "preparing" if mailout.letter_id is None else "planning"
            started = {"phase": phase, "started_at": now, "updated_at": now}
            tx.execute(dispatches.update().where(D.id == mailout_id).values(**started))
            said = {**_excepting(mailout, except_of), **(_remembered(event, mailout) if event else {})}
            return self._change(tx, mailout_id, now, **said, scheduled=False, forced=forced, reason=None)

    def hear(self, mailout_id: str, event: PageEvent) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id)
            if mailout is None or not event.is_news_to(mailout.page_event):
                return False
            return self._change(tx, mailout_id, now, **_remembered(event, mailout))

    def note(self, mailout_id: str, reason: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id)
            # A paused one may have been sent from another copy of the database: that is what is told of it.
            if mailout is None or mailout.status == MailoutStatus.SENDING:
                return False
            if mailout.cancelled or mailout.paused:
                return False
            return self._change(tx, mailout_id, now, reason=reason)

    def schedule(
        self,
        mailout_id: str,
        send_at: datetime,
        *,
        except_of: Sequence[str] | None = None,
        forced: bool = False,
    ) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id, MailoutStatus.READY)
            if mailout is None:
                return False
            said = {**_excepting(mailout, except_of), "forced": forced, "reason": None}
            return self._change(tx, mailout_id, now, **said, send_at=send_at, scheduled=True)

    def unschedule(self, mailout_id: str, reason: str | None = None) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id, MailoutStatus.READY)
            if mailout is None or not mailout.scheduled:
                return False
            return self._change(tx, mailout_id, now, scheduled=False, reason=reason)

    def due(self) -> Sequence[Mailout]:
        with self._db.reading() as tx:
            come = sa.and_(M.scheduled, M.send_at <= self._db.now(tx), _HAS_STATUS[MailoutStatus.READY])
            query = _MAILOUTS.where(come).order_by(M.send_at, M.id)
            return [_as_mailout(row) for row in tx.execute(query)]

    def freeze(self, mailout_id: str, name: str, letter: Letter, warnings: Sequence[str]) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            mailout = self._lock(tx, mailout_id, MailoutStatus.SENDING)
            if mailout is None or mailout.phase != Phase.FETCHING:
                return False
            self._set_letter(tx, mailout_id, insert_letter(tx, mailout.tenant_id, letter, now))
            tx.execute(dispatches.update().where(D.id == mailout_id).values(phase="planning"))
            return self._change(tx, mailout_id, now, name=name, warnings=list(warnings))

    def stop_before_first(
        self,
        mailout_id: str,
        reason: str | None,
        warnings: Sequence[str] = (),
        *,
        send_at: datetime | None = None,
    ) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            # A planner may hold the rows: what it planned shows only in a statement after its commit.
            mailout = self._lock(tx, mailout_id, MailoutStatus.SENDING)
            if mailout is None or mailout.phase not in (Phase.FETCHING, Phase.PLANNING):
                return False
            planned = sa.select(J.id).where(J.dispatch_id == mailout_id).limit(1)
            if tx.execute(planned).first() is not None:
                return False
            back = {"phase": "preparing", "started_at": None, "due_from": None, "updated_at": now}
            tx.execute(dispatches.update().where(D.id == mailout_id).values(**back))
            if mailout.source_id is not None:
                # A page is read again at the next start: its author has something to mend.
                self._set_letter(tx, mailout_id, None)
            timed = {"send_at": send_at, "scheduled": True} if send_at is not None else {}
            return self._change(tx, mailout_id, now, reason=reason, warnings=list(warnings), **timed)

    def plan_chunk(self, mailout_id: str, planner: str, size: int) -> PlanProgress | None:
        return self._planning.plan_chunk(mailout_id, planner, size)

    # -- reports -------------------------------------------------------------------------------

    def with_stale_report(self, source: str, limit: int) -> Sequence[tuple[Mailout, str | None]]:
        changed = sa.case((M.updated_at > D.updated_at, M.updated_at), else_=D.updated_at)
        with self._db.reading() as tx:
            lately = self._db.now(tx) - REPORTED_FOR
            recent = sa.or_(M.updated_at > lately, D.updated_at > lately)
            changing = sa.or_(_HAS_STATUS[MailoutStatus.SENDING], M.reported.is_(None), recent)
            query = _MAILOUTS.where(M.source == source, changing).order_by(changed.desc())
            return [(_as_mailout(row), row.mailouts_reported) for row in tx.execute(query.limit(limit))]

    def set_reported(self, mailout_id: str, what: str) -> None:
        with self._db.writing() as tx:
            tx.execute(mailouts.update().where(M.id == mailout_id).values(reported=what))


_MAILOUTS = (
    sa.select(mailouts, dispatches)
    .join_from(mailouts, dispatches, M.id == D.id)
    .set_label_style(sa.LABEL_STYLE_TABLENAME_PLUS_COL)
)
_NEWEST_FIRST = _MAILOUTS.order_by(M.created_at.desc(), M.id.desc())
_OPEN = D.phase != sa.literal_column("'over'")
# ``Mailout.seen_through`` in SQL.
_HAS_STATUS = {
    MailoutStatus.DRAFT: sa.and_(M.status == "draft", D.started_at.is_(None), _OPEN),
    MailoutStatus.READY: sa.and_(M.status == "ready", D.started_at.is_(None), _OPEN),
    MailoutStatus.SENDING: sa.and_(D.started_at.is_not(None), _OPEN),
    MailoutStatus.SENT: sa.and_(D.result == "sent", ~_OPEN),
    MailoutStatus.FAILED: sa.and_(D.result == "failed", ~_OPEN),
}


def _remembered(event: PageEvent, mailout: Mailout) -> dict[str, Any]:
    known = mailout.page_event.at if mailout.page_event else None
    return {"page_event": event.id, "page_event_at": event.at or known}


def _excepting(mailout: Mailout, except_of: Sequence[str] | None) -> dict[str, Any]:
    """Gathering begins again with every start. Without a word, what was said before holds."""
    if except_of is None:
        return {"except_cursor": "" if mailout.except_of else None}
    return {"except_of": list(except_of) or sa.null(), "except_cursor": "" if except_of else None}


_OWN = tuple(
    f.name
    for f in fields(Mailout)
    if f.name not in ("status", "audience", "warnings", "except_of", "page_event")
    if f.name in M
)


def _as_mailout(row: Row[Any]) -> Mailout:
    own = {name: getattr(row, f"mailouts_{name}") for name in M.keys()}  # noqa: SIM118 (a collection of columns)
    told = {name: getattr(row, f"dispatches_{name}") for name in D.keys()}  # noqa: SIM118
    page_event = PageEvent(own["page_event"], own["page_event_at"]) if own["page_event"] else None
    mailout = Mailout(
        **{name: own[name] for name in _OWN},
        status=MailoutStatus(own["status"]),
        audience=tuple(own["audience"]) if own["audience"] is not None else None,
        warnings=tuple(own["warnings"]),
        except_of=tuple(own["except_of"] or ()),
        page_event=page_event,
    )
    return mailout.seen_through(as_dispatch(told))
