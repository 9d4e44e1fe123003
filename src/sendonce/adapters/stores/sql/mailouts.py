"""Mailouts on SQL: started once, planned in chunks, finished when nothing is open."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import excluded_recipients, letters, mailouts, message_jobs
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.exclusions import count_excluded
from sendonce.adapters.stores.sql.planning import SqlPlanning
from sendonce.adapters.stores.sql.rows import in_state, insert_audit, insert_for, insert_outbox, new_id
from sendonce.domain.engine.ids import prefix_range
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.letters import Letter
from sendonce.domain.mailouts.mailouts import (
    RESTORED,
    Mailout,
    MailoutStatus,
    NewMailout,
    PageEvent,
    Phase,
    PlanProgress,
)
from sendonce.errors import NotFound

M = mailouts.c
J = message_jobs.c
# Deliveries, bounces and complaints come in for days after the last letter.
REPORTED_FOR = timedelta(days=7)


class SqlMailouts:
    def __init__(self, database: Database) -> None:
        self._db = database
        self._planning = SqlPlanning(database)

    def create(self, tenant_id: str, new: NewMailout) -> Mailout:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            letter_id = _insert_letter(tx, tenant_id, new.letter, now) if new.letter else None
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
        if inserted or new.source_id is None:
            mailout = self.get(values["id"])
        else:
            mailout = self.of_page(tenant_id, new.source, new.source_id)
        assert mailout is not None
        return mailout

    def of_page(self, tenant_id: str, source: str, source_id: str) -> Mailout | None:
        query = sa.select(mailouts).where(
            M.tenant_id == tenant_id, M.source == source, M.source_id == source_id, ~M.is_test
        )
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_mailout(row) if row else None

    def get(self, mailout_id: str) -> Mailout | None:
        with self._db.reading() as tx:
            row = tx.execute(sa.select(mailouts).where(M.id == mailout_id)).one_or_none()
            return _as_mailout(row) if row else None

    def letter(self, mailout_id: str) -> Letter:
        query = sa.select(letters).join(mailouts, M.letter_id == letters.c.id).where(M.id == mailout_id)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
        if row is None:
            raise NotFound(f"There is no mailout {mailout_id}: 'sendonce mailout list' shows what there is.")
        return Letter(
            subject=row.subject,
            preheader=row.preheader,
            html=row.html,
            text=row.text,
            from_name=row.from_name,
            reply_to=row.reply_to,
            text_only=row.text_only,
        )

    def all(self, limit: int = 100) -> Sequence[Mailout]:
        with self._db.reading() as tx:
            query = sa.select(mailouts).order_by(M.created_at.desc(), M.id.desc()).limit(limit)
            return [_as_mailout(row) for row in tx.execute(query)]

    def with_status(self, status: MailoutStatus) -> Sequence[Mailout]:
        with self._db.reading() as tx:
            query = sa.select(mailouts).where(M.status == status).order_by(M.id)
            return [_as_mailout(row) for row in tx.execute(query)]

    def replace_letter(self, mailout_id: str, new: NewMailout) -> bool:
        assert new.letter is not None
        with self._db.writing() as tx:
            now = self._db.now(tx)
            row = self._unsent(tx, mailout_id)
            if row is None or row.source_id is not None:
                return False
            changes = {
                "letter_id": _insert_letter(tx, row.tenant_id, new.letter, now),
                "name": new.name,
                "warnings": list(new.warnings),
                "send_at": row.send_at if row.scheduled else new.send_at,
                "reason": row.reason if row.paused else None,
                "updated_at": now,
            }
            tx.execute(mailouts.update().where(M.id == mailout_id).values(**changes))
            tx.execute(letters.delete().where(letters.c.id == row.letter_id))
            return True

    def delete(self, mailout_id: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            row = self._unsent(tx, mailout_id)
            if row is None:
                return False
            tx.execute(excluded_recipients.delete().where(excluded_recipients.c.mailout_id == mailout_id))
            tx.execute(mailouts.delete().where(M.id == mailout_id))
            tx.execute(letters.delete().where(letters.c.id == row.letter_id))
            insert_audit(tx, now, "operator", "delete", mailout_id, {"name": row.name})
            return True

    def _unsent(self, tx: Connection, mailout_id: str) -> Row[Any] | None:
        """The locked row of a mailout that nobody has started."""
        unsent = sa.select(mailouts).where(M.id == mailout_id, M.status.in_(["draft", "ready"]))
        return tx.execute(unsent.with_for_update()).one_or_none()

    def twins(self, tenant_id: str, letter: Letter) -> Sequence[Mailout]:
        same = sa.and_(
            letters.c.subject == letter.subject, letters.c.html == letter.html, letters.c.text == letter.text
        )
        query = (
            sa.select(mailouts)
            .join(letters, M.letter_id == letters.c.id)
            .where(M.tenant_id == tenant_id, M.started_at.is_not(None), ~M.is_test, same)
            .order_by(M.started_at.desc(), M.id.desc())
        )
        with self._db.reading() as tx:
            return [_as_mailout(row) for row in tx.execute(query)]

    def count_excluded(self, tenant_id: str, except_of: Sequence[str]) -> int:
        with self._db.reading() as tx:
            return count_excluded(tx, tenant_id, list(except_of))

    def with_prefix(self, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        with self._db.reading() as tx:
            query = sa.select(M.id).where(M.id.between(first, last)).order_by(M.id).limit(limit)
            return list(tx.execute(query).scalars())

    # -- starting and planning -----------------------------------------------------------------

    def make_ready(self, mailout_id: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            update = mailouts.update().where(M.id == mailout_id, M.status == "draft")
            return tx.execute(update.values(status="ready", updated_at=now)).rowcount == 1

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
            reason = sa.case((M.paused, M.reason), else_=None)
            phase = sa.case((M.letter_id.is_(None), "fetching"), else_="planning")
            started = {"status": "sending", "phase": phase, "started_at": now, "reason": reason}
            update = mailouts.update().where(M.id == mailout_id, M.status == "ready")
            if checked is not None:
                update = update.where(_is_still(checked))
            if event is not None:
                update = update.where(_is_news(event)).values(**_remembered(event))
            said = {**started, **_excepting(except_of), "scheduled": False, "forced": forced}
            return tx.execute(update.values(**said, updated_at=now)).rowcount == 1

    def hear(self, mailout_id: str, event: PageEvent) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            update = mailouts.update().where(M.id == mailout_id, _is_news(event))
            return tx.execute(update.values(**_remembered(event), updated_at=now)).rowcount == 1

    def note(self, mailout_id: str, reason: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            # A paused one may have been sent from another copy of the database: its reason stays.
            update = mailouts.update().where(
                M.id == mailout_id, M.status != "sending", ~M.cancelled, ~M.paused
            )
            return tx.execute(update.values(reason=reason, updated_at=now)).rowcount == 1

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
            update = mailouts.update().where(M.id == mailout_id, M.status == "ready")
            # A paused one may have been sent from another copy of the database: its reason stays.
            reason = sa.case((M.paused, M.reason), else_=None)
            told = {"send_at": send_at, "scheduled": True, "forced": forced, "reason": reason}
            said = {**told, **_excepting(except_of), "updated_at": now}
            return tx.execute(update.values(**said)).rowcount == 1

    def unschedule(self, mailout_id: str, reason: str | None = None) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            update = mailouts.update().where(M.id == mailout_id, M.status == "ready", M.scheduled)
            told = {"scheduled": False, "reason": _because(reason), "updated_at": now}
            return tx.execute(update.values(**told)).rowcount == 1

    def due(self) -> Sequence[Mailout]:
        with self._db.reading() as tx:
            come = sa.and_(M.scheduled, M.status == "ready", M.send_at <= self._db.now(tx))
            query = sa.select(mailouts).where(come).order_by(M.send_at, M.id)
            return [_as_mailout(row) for row in tx.execute(query)]

    def freeze(self, mailout_id: str, name: str, letter: Letter, warnings: Sequence[str]) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            fetching = (M.id == mailout_id) & (M.status == "sending") & (M.phase == "fetching")
            query = sa.select(M.tenant_id).where(fetching).with_for_update(key_share=True)
            tenant_id = tx.execute(query).scalar_one_or_none()
            if tenant_id is None:
                return False
            frozen = {
                "letter_id": _insert_letter(tx, tenant_id, letter, now),
                "name": name,
                "warnings": list(warnings),
                "phase": "planning",
                "updated_at": now,
            }
            tx.execute(mailouts.update().where(fetching).values(**frozen))
            return True

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
            # A planner may hold the row: what it planned shows only in a statement after its commit.
            tx.execute(sa.select(M.id).where(M.id == mailout_id).with_for_update(key_share=True))
            planned = sa.select(J.id).where(J.mailout_id == mailout_id).exists()
            back: dict[str, Any] = {
                "status": "ready",
                "phase": None,
                "started_at": None,
                "reason": _because(reason),
                "warnings": list(warnings),
                "updated_at": now,
            }
            update = mailouts.update().where(
                M.id == mailout_id, M.status == "sending", M.phase.in_(["fetching", "planning"])
            )
            if send_at is not None:
                back |= {"send_at": send_at, "scheduled": True}
            # A page is read anew at the next start: its author has something to mend.
            back["letter_id"] = sa.case((M.source_id.is_(None), M.letter_id), else_=sa.null())
            return tx.execute(update.where(~planned).values(**back)).rowcount == 1

    def plan_chunk(self, mailout_id: str, planner: str, size: int) -> PlanProgress | None:
        return self._planning.plan_chunk(mailout_id, planner, size)

    # -- pausing, cancelling, finishing --------------------------------------------------------

    def with_stale_report(self, source: str, limit: int) -> Sequence[tuple[Mailout, str | None]]:
        with self._db.reading() as tx:
            lately = self._db.now(tx) - REPORTED_FOR
            changing = sa.or_(M.status == "sending", M.reported.is_(None), M.updated_at > lately)
            query = sa.select(mailouts).where(M.source == source, changing).order_by(M.updated_at.desc())
            return [(_as_mailout(row), row.reported) for row in tx.execute(query.limit(limit))]

    def set_reported(self, mailout_id: str, what: str) -> None:
        with self._db.writing() as tx:
            tx.execute(mailouts.update().where(M.id == mailout_id).values(reported=what))

    def set_paused(self, mailout_id: str, paused: bool) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            update = mailouts.update().where(M.id == mailout_id, M.status == "sending", ~M.cancelled)
            return tx.execute(update.values(paused=paused, updated_at=now)).rowcount == 1

    def cancel(self, mailout_id: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            open_states = ["draft", "ready", "sending"]
            update = mailouts.update().where(M.id == mailout_id, M.status.in_(open_states), ~M.cancelled)
            ended = {"cancelled": True, "scheduled": False, "reason": "cancelled", "updated_at": now}
            changed = tx.execute(update.values(**ended)).rowcount
            # A letter that was not read yet need not be read any more: there is nothing to plan.
            unread = mailouts.update().where(M.id == mailout_id, M.phase == "fetching", M.cancelled)
            tx.execute(unread.values(phase="running"))
            unstarted = mailouts.update().where(M.id == mailout_id, M.started_at.is_(None), M.cancelled)
            tx.execute(unstarted.values(status="failed", phase="over"))
            if changed:
                insert_audit(tx, now, "operator", "cancel", mailout_id, {})
            return changed == 1

    def cancel_chunk(self, mailout_id: str, size: int) -> int:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            chosen = (
                sa.select(J.id)
                .join(mailouts, M.id == J.mailout_id)
                .where(J.mailout_id == mailout_id, in_state(JobState.SCHEDULED), M.cancelled)
                .order_by(J.id)
                .limit(size)
            )
            update = message_jobs.update().where(J.id.in_(chosen), in_state(JobState.SCHEDULED))
            return tx.execute(update.values(state="skipped", reason="cancelled", settled_at=now)).rowcount

    def call_back_chunk(self, mailout_id: str, longest: timedelta, size: int) -> int:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            far = sa.select(J.id).where(J.mailout_id == mailout_id, in_state(JobState.SCHEDULED))
            chosen = far.where(J.due_at > now + longest).order_by(J.due_at).limit(size)
            update = message_jobs.update().where(J.id.in_(chosen), in_state(JobState.SCHEDULED))
            return tx.execute(update.values(due_at=now)).rowcount

    def complete(self, mailout_id: str) -> MailoutStatus | None:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            # Lock first and look afterwards, in a statement of its own: a look from the lock's own
            # snapshot misses a job that another transaction has just made scheduled.
            tx.execute(sa.select(M.id).where(M.id == mailout_id).with_for_update(key_share=True))
            of_mailout = sa.select(J.id).where(J.mailout_id == mailout_id)
            open_jobs = sa.or_(
                *(of_mailout.where(in_state(s)).exists() for s in (JobState.SCHEDULED, JobState.SENDING))
            )
            # "failed" is a mailout that ended with nothing accepted, and nothing that may have been.
            accepted = of_mailout.where(J.state.in_(["sent", "in_doubt"]))
            lost = sa.or_(M.cancelled, of_mailout.exists()) & ~accepted.exists()
            status = sa.case((lost, "failed"), else_="sent")
            update = (
                mailouts.update()
                .where(M.id == mailout_id, M.status == "sending", M.phase == "running", ~open_jobs)
                .values(status=status, phase="over", sent_at=now, updated_at=now)
                .returning(M.status)
            )
            ended = tx.execute(update).scalar_one_or_none()
            if ended is None:
                return None
            insert_outbox(tx, now, "mailout.report", {"mailout_id": mailout_id, "status": ended})
            return MailoutStatus(ended)


def _because(reason: str | None) -> sa.ColumnElement[str | None]:
    """``Mailout.because`` in SQL."""
    return sa.case(
        (sa.and_(M.paused, M.reason == RESTORED), RESTORED), else_=sa.literal(reason, M.reason.type)
    )


def _is_still(checked: Mailout) -> sa.ColumnElement[bool]:
    """``Mailout.is_still`` in SQL."""
    return sa.and_(
        M.letter_id.is_not_distinct_from(checked.letter_id),
        M.send_at.is_not_distinct_from(checked.send_at),
        M.scheduled == checked.scheduled,
    )


def _is_news(event: PageEvent) -> sa.ColumnElement[bool]:
    """``PageEvent.is_news_to`` in SQL."""
    another = sa.or_(M.page_event.is_(None), M.page_event != event.id)
    if event.at is None:
        return another
    return another & sa.or_(M.page_event_at.is_(None), M.page_event_at <= event.at)


def _remembered(event: PageEvent) -> dict[str, Any]:
    return {"page_event": event.id, "page_event_at": event.at or M.page_event_at}


def _excepting(except_of: Sequence[str] | None) -> dict[str, Any]:
    """Gathering begins anew with every start. Without a word, what was said before holds."""
    if except_of is None:
        return {"except_cursor": sa.case((M.except_of.is_not(None), ""), else_=None)}
    return {"except_of": list(except_of) or sa.null(), "except_cursor": "" if except_of else None}


def _insert_letter(tx: Connection, tenant_id: str, letter: Letter, now: datetime) -> str:
    letter_id = new_id(now)
    tx.execute(
        letters.insert().values(
            id=letter_id,
            tenant_id=tenant_id,
            subject=letter.subject,
            preheader=letter.preheader,
            from_name=letter.from_name,
            reply_to=letter.reply_to,
            text_only=letter.text_only,
            html=letter.html,
            text=letter.text,
            created_at=now,
        )
    )
    return letter_id


def _as_mailout(row: Row[Any]) -> Mailout:
    return Mailout(
        id=row.id,
        tenant_id=row.tenant_id,
        letter_id=row.letter_id,
        name=row.name,
        source=row.source,
        source_id=row.source_id,
        is_test=row.is_test,
        audience=tuple(row.audience) if row.audience is not None else None,
        warnings=tuple(row.warnings),
        status=MailoutStatus(row.status),
        phase=Phase(row.phase) if row.phase else None,
        paused=row.paused,
        cancelled=row.cancelled,
        reason=row.reason,
        created_at=row.created_at,
        started_at=row.started_at,
        sent_at=row.sent_at,
        send_at=row.send_at,
        scheduled=row.scheduled,
        except_of=tuple(row.except_of or ()),
        page_event=PageEvent(row.page_event, row.page_event_at) if row.page_event else None,
        forced=row.forced,
    )
