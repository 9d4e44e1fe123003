"""Written letters on SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    companies,
    company_queries,
    contacts,
    dispatches,
    job_states,
    planned_jobs,
    processing_jobs,
    serp_queries,
    written_letters,
)
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.prospecting.rivals import letter_to_group, mailbox_is_taken, wish_of_group
from sendonce.adapters.stores.sql.rows import in_state, insert_for, new_id
from sendonce.domain.engine.ids import prefix_range
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.domain.people.legal_gate import Addressee
from sendonce.domain.prospecting.send_slots import LOOK_BACK, Slot, keeps_limit
from sendonce.domain.prospecting.written_letters import (
    BY_PERSON,
    OPEN,
    UNWANTED,
    LetterStatus,
    NewWrittenLetter,
    Outcome,
    ShownStatus,
    WrittenLetter,
    why_unfit,
)

W, C, K, J, D = written_letters.c, companies.c, contacts.c, job_states.c, dispatches.c
_MADE = tuple(field.name for field in fields(NewWrittenLetter) if field.name != "status")
_OF_COMPANY = (C.domain, C.name, C.status.label("company_status"), C.opt_out)
_OF_CONTACT = (K.trouble, K.role, K.freemail)
_OF_JOB = (J.state, J.reason, J.settled_at)
_SELECT = (
    sa.select(written_letters, *_OF_COMPANY, *_OF_CONTACT, *_OF_JOB)
    .join_from(written_letters, companies, C.id == W.company_id)
    .join(contacts, K.id == W.contact_id)
    .outerjoin(job_states, J.id == W.job_id)
)
_SHOWN = sa.case((W.status == "planned", sa.func.coalesce(J.state, "planned")), else_=W.status)
_PLANNING = 7365647
# In the words of the index.
_HALF_PLANNED = sa.text("written_letters.status = 'planned' AND written_letters.job_id IS NULL")
SAME_ADDRESS = "another letter of this direction goes to the same address"
SAME_COMPANY = "a duplicate of the company has a letter of this direction"


class SqlWrittenLetters:
    def __init__(self, database: Database) -> None:
        self._db = database

    # -- writing ---------------------------------------------------------------------------------

    def unwritten(
        self, tenant_id: TenantId, direction_id: str, *, of_any_search: bool, limit: int
    ) -> Sequence[str]:
        queries = serp_queries.c
        found = (
            sa.select(company_queries.c.company_id)
            .join(serp_queries, queries.id == company_queries.c.query_id)
            .where(company_queries.c.company_id == C.id)
        )
        own = queries.direction_id == direction_id
        found = found.where(sa.or_(own, queries.direction_id.is_(None)) if of_any_search else own)
        primary = sa.select(K.id).where(K.company_id == C.id, K.kind == "email", K.is_primary)
        same = companies.alias()
        one = sa.select(same.c.id).where(sa.or_(same.c.id == C.id, same.c.primary_id == C.id))
        one = one.correlate(companies)
        written = sa.select(W.id).where(W.tenant_id == tenant_id, W.direction_id == direction_id)
        written = written.where(W.company_id.in_(one))
        query = (
            sa.select(C.id)
            .where(C.tenant_id == tenant_id, C.status == "enriched", ~C.opt_out)
            .where(found.exists(), primary.exists(), ~written.exists(), ~_unjudged().exists())
            .order_by(C.id)
            .limit(limit)
        )
        with self._db.reading() as tx:
            return list(tx.execute(query).scalars())

    def add(self, tenant_id: TenantId, letter: NewWrittenLetter, now: datetime) -> str | None:
        row = {**asdict(letter), "id": new_id(now), "tenant_id": tenant_id}
        row |= {"created_at": now, "updated_at": now}
        if letter.reviewer is not None:
            row["reviewed_at"] = now
        put = insert_for(self._db)(written_letters).values(row)
        put = put.on_conflict_do_nothing(index_elements=["tenant_id", "direction_id", "company_id"])
        own = contacts.c.id == letter.contact_id, contacts.c.company_id == letter.company_id
        known = sa.select(contacts.c.id).where(contacts.c.tenant_id == tenant_id, *own)
        with self._db.writing() as tx:
            if tx.execute(known).first() is None:
                return None
            return tx.execute(put.returning(W.id)).scalar_one_or_none()

    def spent_since(self, moment: datetime) -> float:
        query = sa.select(sa.func.coalesce(sa.func.sum(W.price), 0.0)).where(W.created_at > moment)
        with self._db.reading() as tx:
            return float(tx.execute(query).scalar_one())

    # -- looking ---------------------------------------------------------------------------------

    def get(self, tenant_id: TenantId, letter_id: str) -> WrittenLetter | None:
        query = _SELECT.where(W.tenant_id == tenant_id, W.id == letter_id)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_letter(row) if row else None

    def of_job(self, tenant_id: TenantId, job_id: str) -> WrittenLetter | None:
        query = _SELECT.where(W.tenant_id == tenant_id, W.job_id == job_id)
        with self._db.reading() as tx:
            row = tx.execute(query).one_or_none()
            return _as_letter(row) if row else None

    def all(
        self,
        tenant_id: TenantId,
        *,
        status: ShownStatus | None = None,
        direction_id: str | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> Sequence[WrittenLetter]:
        query = _SELECT.where(W.tenant_id == tenant_id).order_by(W.id).limit(limit)
        if status is not None:
            query = query.where(_is_shown_as(status))
        if direction_id is not None:
            query = query.where(W.direction_id == direction_id)
        if after:
            query = query.where(W.id > after)
        with self._db.reading() as tx:
            return [_as_letter(row) for row in tx.execute(query)]

    def count(self, tenant_id: TenantId, direction_id: str | None = None) -> Mapping[str, int]:
        query = (
            sa.select(_SHOWN, sa.func.count())
            .select_from(written_letters.outerjoin(job_states, J.id == W.job_id))
            .where(W.tenant_id == tenant_id)
            .group_by(_SHOWN)
        )
        if direction_id is not None:
            query = query.where(W.direction_id == direction_id)
        with self._db.reading() as tx:
            return {row[0]: row[1] for row in tx.execute(query)}

    def with_prefix(self, tenant_id: TenantId, prefix: str, limit: int) -> Sequence[str]:
        first, last = prefix_range(prefix)
        query = sa.select(W.id).where(W.tenant_id == tenant_id, W.id.between(first, last))
        with self._db.reading() as tx:
            return list(tx.execute(query.order_by(W.id).limit(limit)).scalars())

    # -- reviewing -------------------------------------------------------------------------------

    def review(
        self,
        tenant_id: TenantId,
        letter_id: str,
        verdict: LetterStatus,
        actor: str,
        note: str | None = None,
    ) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            change = {"status": verdict, "reviewer": actor, "reviewed_at": now, "note": note}
            if not _change(tx, tenant_id, letter_id, OPEN, now, change):
                return False
            insert_audit(tx, now, actor, "review_letter", letter_id, {"verdict": verdict, "note": note})
            return True

    def edit(
        self,
        tenant_id: TenantId,
        letter_id: str,
        subject: str,
        text: str,
        checks: Sequence[Mapping[str, Any]],
        actor: str,
    ) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            change = {"subject": subject, "text": text, "checks": checks, "written_by": BY_PERSON}
            again = {"status": LetterStatus.WAITING, "reviewer": None, "reviewed_at": None}
            if not _change(tx, tenant_id, letter_id, OPEN, now, {**change, **again}):
                return False
            insert_audit(tx, now, actor, "edit_letter", letter_id, {})
            return True

    def skip(self, tenant_id: TenantId, letter_id: str, reason: str) -> bool:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            skipped = {"status": LetterStatus.SKIPPED, "note": reason}
            half = _HALF_PLANNED & (W.tenant_id == tenant_id) & (W.id == letter_id)
            again = written_letters.update().where(half).values(**skipped, updated_at=now)
            return _change(tx, tenant_id, letter_id, OPEN, now, skipped) or tx.execute(again).rowcount == 1

    # -- planning --------------------------------------------------------------------------------

    def slots_taken(self, since: datetime, now: datetime) -> Sequence[datetime]:
        with self._db.reading() as tx:
            return _slots_taken(tx, since, now)

    def open_dispatch(self, tenant_id: TenantId, direction_id: str) -> DispatchId | None:
        query = (
            sa.select(W.dispatch_id)
            .join(dispatches, D.id == W.dispatch_id)
            .where(W.tenant_id == tenant_id, W.direction_id == direction_id, ~D.cancelled)
            .order_by(W.id.desc())
            .limit(1)
        )
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one_or_none()

    def begin_plan(
        self,
        tenant_id: TenantId,
        letter_id: str,
        dispatch_id: DispatchId,
        engine_letter: str,
        slot: Slot,
    ) -> bool:
        with self._db.writing() as tx:
            if not self._db.is_sqlite:
                # One planner at a time, so that two of them do not fill the same day.
                tx.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_PLANNING})")
            now = self._db.now(tx)
            if not keeps_limit(slot.at, _slots_taken(tx, slot.at - LOOK_BACK, now), slot.daily_limit):
                return False
            planned = {"dispatch_id": dispatch_id, "letter_id": engine_letter, "slot_at": slot.at}
            planned |= {"status": LetterStatus.PLANNED}
            approved = (LetterStatus.APPROVED,)
            if reason := _against(tx, tenant_id, letter_id):
                skipped = {"status": LetterStatus.SKIPPED, "note": reason}
                _change(tx, tenant_id, letter_id, approved, now, skipped)
                return False
            return _change(tx, tenant_id, letter_id, approved, now, planned)

    def scheduled(self, tenant_id: TenantId, direction_id: str) -> Sequence[WrittenLetter]:
        own = (W.tenant_id == tenant_id) & (W.direction_id == direction_id)
        rivals = (wish_of_group().label("wish"), letter_to_group("scheduled", "skipped").label("rival"))
        query = _SELECT.add_columns(*rivals).where(own, in_state(JobState.SCHEDULED)).order_by(W.id)
        with self._db.reading() as tx:
            rows = tx.execute(query).all()
        return [replace(_as_letter(row), unfit=_unfit(row) or _of_group(row)) for row in rows]

    def half_planned(self, limit: int) -> Sequence[WrittenLetter]:
        query = _SELECT.where(_HALF_PLANNED).order_by(W.id).limit(limit)
        with self._db.reading() as tx:
            return [_as_letter(row) for row in tx.execute(query)]

    def link_jobs(self, dispatch_id: DispatchId) -> int:
        planned = planned_jobs.c
        own = (planned.dispatch_id == dispatch_id) & (planned.recipient_key == W.recipient_key)
        job = sa.select(planned.id).where(own)
        change = written_letters.update().where(W.dispatch_id == dispatch_id, W.job_id.is_(None))
        with self._db.writing() as tx:
            now = self._db.now(tx)
            linked = change.where(job.exists()).values(job_id=job.scalar_subquery(), updated_at=now)
            return tx.execute(linked).rowcount


def _is_shown_as(status: ShownStatus) -> sa.ColumnElement[bool]:
    own_word = status.value in OPEN  # which no job has, and for which there is an index
    return W.status == status if own_word else _SHOWN.in_(status.covers)


def _slots_taken(tx: Connection, since: datetime, now: datetime) -> list[datetime]:
    waits = sa.case((J.due_at > now, J.due_at), else_=now)
    at = sa.case((J.state == "scheduled", waits), else_=sa.func.coalesce(J.settled_at, J.claimed_at))
    query = (
        sa.select(sa.func.coalesce(at, W.slot_at, type_=W.slot_at.type))
        .select_from(written_letters.outerjoin(job_states, J.id == W.job_id))
        .where(W.slot_at > since, W.status == "planned")
        .where(sa.or_(J.state.is_(None), J.state != "skipped"))
    )
    return sorted(tx.execute(query).scalars())


def _change(
    tx: Connection,
    tenant_id: TenantId,
    letter_id: str,
    only_if: Sequence[LetterStatus],
    now: datetime,
    values: Mapping[str, Any],
) -> bool:
    own = (W.tenant_id == tenant_id) & (W.id == letter_id) & W.status.in_(only_if)
    change = written_letters.update().where(own).values(**values, updated_at=now)
    return tx.execute(change).rowcount == 1


def _against(tx: Connection, tenant_id: TenantId, letter_id: str) -> str | None:
    """Why an approved letter is not to be planned, by what is known in this transaction."""
    rivals = (wish_of_group().label("wish"), letter_to_group("skipped").label("rival"))
    row = tx.execute(_SELECT.add_columns(*rivals).where(W.tenant_id == tenant_id, W.id == letter_id)).first()
    if row is None:
        return None
    if reason := _unfit(row) or _of_group(row):
        return reason
    return SAME_ADDRESS if mailbox_is_taken(tx, letter_id, row.recipient_key) else None


def _as_letter(row: Row[Any]) -> WrittenLetter:
    made = {name: getattr(row, name) for name in _MADE}
    return WrittenLetter(
        id=row.id,
        tenant_id=row.tenant_id,
        made=NewWrittenLetter(**made, status=LetterStatus(row.status)),
        domain=row.domain,
        company_name=row.name,
        unfit=_unfit(row),
        addressee=Addressee(row.role, row.freemail),
        reviewed_at=row.reviewed_at,
        letter_id=row.letter_id,
        dispatch_id=row.dispatch_id,
        job_id=row.job_id,
        slot_at=row.slot_at,
        outcome=Outcome(row.state, row.reason, row.settled_at) if row.state else None,
        created_at=row.created_at,
    )


def _unfit(row: Row[Any]) -> str | None:
    return why_unfit(row.company_status, row.opt_out, row.trouble)


def _of_group(row: Row[Any]) -> str | None:
    if row.wish:
        return UNWANTED
    return SAME_COMPANY if row.rival else None


def _unjudged() -> sa.Select[Any]:
    """The look for duplicates that a company waits for: it may turn out to be one."""
    task = processing_jobs.c
    key = sa.literal("dedupe:") + sa.cast(C.id, sa.Text)
    return sa.select(task.id).where(task.dedupe_key == key, task.state.in_(["waiting", "leased"]))
