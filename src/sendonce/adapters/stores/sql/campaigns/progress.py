"""How far a campaign got with each of its leads, on SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from sendonce.adapters.stores.schema import (
    campaign_leads,
    campaign_letters,
    campaigns,
    job_states,
    leads,
    leases,
    mailbox_messages,
    message_jobs,
    planned_jobs,
    sender_identities,
    sender_limits,
)
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.rows import insert_for
from sendonce.domain.campaigns.campaigns import (
    Advance,
    CampaignId,
    CampaignStatus,
    ChosenLetter,
    DueLead,
    LeadStanding,
    LetterEnd,
    Stop,
    WaitingLetter,
)
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.rotation import Record
from sendonce.domain.campaigns.slots import Taken
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.tenants import TenantId
from sendonce.ports.campaigns import PLANNING

L, CL, W, J = leads.c, campaign_leads.c, campaign_letters.c, message_jobs.c
_OPEN = sa.text("campaign_leads.state = 'open'")
_JOB = sa.and_(J.dispatch_id == W.dispatch_id, J.recipient_key == W.address_key)
_OVER = [JobState.SENT, JobState.FAILED, JobState.SKIPPED, JobState.DEAD]
_UNDER_WAY = sa.text("campaign_letters.state <> 'over'")
_PUT_OFF = (
    sa.select(J.id)
    .where(_JOB, J.state == JobState.SCHEDULED, J.tries > 0)
    .correlate(campaign_letters)
    .exists()
)
_PAGE = 2000
# What people write back with: a machine's answer is none.
_ANSWERS = ("reply", "opt_out", "complaint")


class SqlProgress:
    def __init__(self, database: Database) -> None:
        self._db = database

    # -- whom to write to next -------------------------------------------------------------------

    def due(
        self, campaign_id: CampaignId, now: datetime, senders: Sequence[str], per_company: int, limit: int
    ) -> Sequence[DueLead]:
        colleague, busy = leads.alias(), campaign_leads.alias()
        colleagues = (
            sa.select(sa.func.count())
            .select_from(busy.join(colleague, colleague.c.id == busy.c.lead_id))
            .where(
                busy.c.campaign_id == campaign_id,
                busy.c.state == sa.literal_column("'open'"),
                busy.c.step > 0,
                colleague.c.tenant_id == L.tenant_id,
                colleague.c.direction_id == L.direction_id,
                colleague.c.company_key == L.company_key,
            )
            .correlate(leads)
            .scalar_subquery()
        )
        columns = (L.id, L.email, L.fields, L.timezone, L.receiver, CL.step, CL.sender_id, L.company_key)
        waiting = (
            sa.select(*columns, colleagues)
            .join_from(campaign_leads, leads, L.id == CL.lead_id)
            .where(CL.campaign_id == campaign_id, _OPEN, CL.due_at <= now)
            .order_by(CL.due_at, CL.lead_id)
            .limit(limit)
        )
        with self._db.reading() as tx:
            follow_ups = tx.execute(waiting.where(CL.step > 0, CL.sender_id.in_(senders))).all()
            firsts = tx.execute(waiting.where(CL.step == 0, colleagues < per_company)).all()
        return [DueLead(*row) for row in [*follow_ups, *firsts][:limit]]

    def choose(
        self,
        campaign_id: CampaignId,
        letters: Sequence[ChosenLetter],
        limits: Sequence[SenderLimits],
        planner: str,
    ) -> bool:
        with self._db.writing() as tx:
            tenant_id = tx.execute(_tenant_planned_by(planner, campaign_id)).scalar_one_or_none()
            if tenant_id is None:
                return False
            for letter in letters:
                own = sa.and_(L.id == letter.lead_id, L.tenant_id == tenant_id)
                address_key = tx.execute(sa.select(L.address_key).where(own)).scalar_one()
                row = {
                    "campaign_id": campaign_id,
                    "lead_id": letter.lead_id,
                    "step": letter.step,
                    "tenant_id": tenant_id,
                    "sender_id": letter.sender_id,
                    "dispatch_id": letter.dispatch_id,
                    "address_key": address_key,
                    "receiver": letter.receiver,
                    "slot_at": letter.slot_at,
                }
                put = insert_for(self._db)(campaign_letters).values(row).on_conflict_do_nothing()
                tx.execute(put)
                taken = campaign_leads.update().where(*_lead(campaign_id, letter.lead_id), _OPEN)
                tx.execute(taken.values(step=letter.step, sender_id=letter.sender_id, due_at=None))
            for each in limits:
                stands = {"credit": each.credit, "days_used": each.days_used, "last_day": each.last_day}
                sender = sender_limits.update().where(sender_limits.c.sender_id == each.sender_id)
                tx.execute(sender.where(sender_limits.c.tenant_id == tenant_id).values(stands))
        return True

    def chosen(self, campaign_id: CampaignId) -> Sequence[ChosenLetter]:
        query = (
            sa.select(W.lead_id, L.email, L.fields, L.timezone, W.receiver, W.step, W.sender_id)
            .add_columns(W.dispatch_id, W.slot_at)
            .join_from(campaign_letters, leads, L.id == W.lead_id)
            .where(W.campaign_id == campaign_id, W.state == sa.literal_column("'chosen'"))
        )
        with self._db.reading() as tx:
            return [ChosenLetter(*row) for row in tx.execute(query)]

    def planned(self, campaign_id: CampaignId, letters: Sequence[ChosenLetter]) -> None:
        with self._db.writing() as tx:
            for letter in letters:
                here = campaign_letters.update().where(
                    *_letter(campaign_id, letter.lead_id, letter.step),
                    W.state == sa.literal_column("'chosen'"),
                )
                tx.execute(here.values(state="planned"))

    def give_up_chosen(self, campaign_id: CampaignId) -> None:
        chosen = campaign_letters.update().where(
            W.campaign_id == campaign_id, W.state == sa.literal_column("'chosen'")
        )
        job = sa.select(J.id).where(_JOB).correlate(campaign_letters).exists()
        with self._db.writing() as tx:
            tx.execute(chosen.values(state=sa.case((job, "planned"), else_="over")))

    # -- what became of letters ------------------------------------------------------------------

    def ends(self, campaign_id: CampaignId, limit: int) -> Sequence[LetterEnd]:
        query = (
            self._with_jobs(campaign_id)
            .where(W.state == sa.literal_column("'planned'"), J.state.in_(_OVER))
            .limit(limit)
        )
        with self._db.reading() as tx:
            return [_as_end(row) for row in tx.execute(query)]

    def troubled(self, campaign_id: CampaignId, newest: int) -> Sequence[LetterEnd]:
        recent = _newest(W.campaign_id == campaign_id, newest)
        query = (
            sa.select(recent.c.lead_id, recent.c.step, L.timezone, *_JOB_COLUMNS)
            .join_from(recent, message_jobs, _job_of(recent))
            .join(leads, L.id == recent.c.lead_id)
            .join(campaign_leads, sa.and_(CL.campaign_id == campaign_id, CL.lead_id == recent.c.lead_id))
            .where(_OPEN, sa.or_(J.bounced_at.is_not(None), J.complained_at.is_not(None)))
        )
        with self._db.reading() as tx:
            return [_as_end(row) for row in tx.execute(query)]

    def answered(self, campaign_id: CampaignId) -> Sequence[Stop]:
        writer, colleague = leads.alias(), leads.alias()
        query = (
            sa.select(colleague.c.id, mailbox_messages.c.kind, writer.c.email)
            .select_from(
                mailbox_messages.join(message_jobs, J.id == mailbox_messages.c.job_id)
                .join(campaign_letters, _JOB)
                .join(writer, writer.c.id == W.lead_id)
                .join(
                    colleague,
                    sa.and_(
                        colleague.c.tenant_id == writer.c.tenant_id,
                        colleague.c.direction_id == writer.c.direction_id,
                        colleague.c.company_key == writer.c.company_key,
                    ),
                )
                .join(campaign_leads, sa.and_(CL.campaign_id == campaign_id, CL.lead_id == colleague.c.id))
            )
            .where(
                W.campaign_id == campaign_id,
                mailbox_messages.c.kind.in_(_ANSWERS),
                mailbox_messages.c.job_id.is_not(None),
                _OPEN,
            )
        )
        words = {"reply": "answered", "opt_out": "asked to be left alone", "complaint": "complained"}
        with self._db.reading() as tx:
            return [Stop(row[0], f"{row[2]} {words[row[1]]}") for row in tx.execute(query)]

    def advance(self, campaign_id: CampaignId, advances: Sequence[Advance]) -> None:
        with self._db.writing() as tx:
            for lead_id, step, left_at, due_at in advances:
                over = campaign_letters.update().where(*_letter(campaign_id, lead_id, step))
                tx.execute(over.values(state="over", left_at=left_at))
                lead = campaign_leads.update().where(*_lead(campaign_id, lead_id), _OPEN)
                goes_on = {"due_at": due_at} if due_at else {"due_at": None, "state": "finished"}
                tx.execute(lead.where(CL.step == step).values(goes_on))

    def stop_leads(self, campaign_id: CampaignId, stops: Sequence[Stop]) -> None:
        with self._db.writing() as tx:
            for stop in stops:
                lead = campaign_leads.update().where(*_lead(campaign_id, stop.lead_id), _OPEN)
                tx.execute(lead.values(state="stopped", reason=stop.reason, due_at=None))

    def waiting(self, campaign_id: CampaignId, lead_ids: Sequence[str]) -> Sequence[WaitingLetter]:
        query = (
            sa.select(W.lead_id, W.dispatch_id, J.id)
            .join_from(campaign_letters, message_jobs, _JOB)
            .where(W.campaign_id == campaign_id, W.state == sa.literal_column("'planned'"))
            .where(W.lead_id.in_(lead_ids), J.state == JobState.SCHEDULED)
        )
        with self._db.reading() as tx:
            return [WaitingLetter(*row) for row in tx.execute(query)]

    def stop_leads_of(self, campaign_id: CampaignId, sender_id: str, reason: str) -> int:
        its_own = campaign_leads.update().where(
            CL.campaign_id == campaign_id, CL.sender_id == sender_id, _OPEN
        )
        with self._db.writing() as tx:
            return tx.execute(its_own.values(state="stopped", reason=reason, due_at=None)).rowcount

    def message_ids(
        self, campaign_id: CampaignId, lead_ids: Sequence[str]
    ) -> Mapping[str, Sequence[tuple[str, str | None]]]:
        query = (
            sa.select(W.lead_id, J.id, J.message_id)
            .join_from(campaign_letters, message_jobs, _JOB)
            .where(W.campaign_id == campaign_id, W.lead_id.in_(lead_ids), J.state == JobState.SENT)
            .order_by(W.lead_id, W.step)
        )
        found: defaultdict[str, list[tuple[str, str | None]]] = defaultdict(list)
        with self._db.reading() as tx:
            for lead_id, job_id, message_id in tx.execute(query):
                found[lead_id].append((job_id, message_id))
        return found

    # -- records and slots -----------------------------------------------------------------------

    def record(self, campaign_id: CampaignId, newest: int, since: datetime | None = None) -> Record:
        return self._record(W.campaign_id == campaign_id, newest, since)

    def record_of_sender(
        self, tenant_id: TenantId, sender_id: str, newest: int, since: datetime | None = None
    ) -> Record:
        return self._record(sa.and_(W.sender_id == sender_id, W.tenant_id == tenant_id), newest, since)

    def record_to_receiver(self, tenant_id: TenantId, receiver: str, newest: int) -> Record:
        return self._record(sa.and_(W.receiver == receiver, W.tenant_id == tenant_id), newest)

    def _record(self, which: sa.ColumnElement[bool], newest: int, since: datetime | None = None) -> Record:
        """Of letters that were tried (accepted, refused, or put off), and what was told of them since."""
        recent = _newest(which if since is None else sa.and_(which, W.slot_at > since), newest)
        refused = J.state == JobState.FAILED
        tried = sa.or_(J.state == JobState.SENT, refused, J.tries > 0)
        query = (
            sa.select(
                sa.func.count(),
                _count(sa.or_(J.bounced_at.is_not(None), refused)),
                _count(J.complained_at.is_not(None)),
                _count(J.tries > 0),
            )
            .select_from(recent.join(message_jobs, _job_of(recent)))
            .where(tried)
        )
        with self._db.reading() as tx:
            return Record(*(value or 0 for value in tx.execute(query).one()))

    def taken(
        self,
        tenant_id: TenantId,
        since: datetime,
        *,
        senders: Sequence[str] | None = None,
        receiver: str | None = None,
    ) -> Taken:
        which = _letters_of(tenant_id, senders, receiver)
        left = sa.select(sa.func.count()).where(which, W.left_at > since)
        under_way = sa.select(sa.func.count()).where(which, _UNDER_WAY)
        if receiver is not None:
            under_way = under_way.where(~_PUT_OFF)
        # One statement and so one snapshot: a letter that is settled meanwhile is in one of the two.
        query = sa.select(under_way.scalar_subquery(), left.scalar_subquery())
        with self._db.reading() as tx:
            return Taken(*tx.execute(query).one())

    def last_slot(
        self, tenant_id: TenantId, *, sender: str | None = None, receiver: str | None = None
    ) -> datetime | None:
        which = _letters_of(tenant_id, None if sender is None else [sender], receiver)
        query = sa.select(W.slot_at).where(which).order_by(W.slot_at.desc()).limit(1)
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one_or_none()

    def due_soon(self, campaign_id: CampaignId, until: datetime, at_most: int) -> int:
        due = sa.select(CL.lead_id).where(CL.campaign_id == campaign_id, _OPEN, CL.due_at <= until)
        query = sa.select(sa.func.count()).select_from(due.limit(at_most).subquery())
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one()

    def lead_states(self, campaign_id: CampaignId) -> Mapping[str, int]:
        query = sa.select(CL.state, sa.func.count()).where(CL.campaign_id == campaign_id).group_by(CL.state)
        with self._db.reading() as tx:
            return {row[0]: row[1] for row in tx.execute(query)}

    def open_leads(self, campaign_id: CampaignId) -> Mapping[int, int]:
        query = sa.select(CL.step, sa.func.count()).where(CL.campaign_id == campaign_id, _OPEN)
        with self._db.reading() as tx:
            return {row[0]: row[1] for row in tx.execute(query.group_by(CL.step))}

    def leads_of(self, campaign_id: CampaignId) -> Iterator[LeadStanding]:
        last = sa.and_(W.campaign_id == CL.campaign_id, W.lead_id == CL.lead_id, W.step == CL.step)
        joined = (
            campaign_leads.join(leads, L.id == CL.lead_id)
            .outerjoin(sender_identities, sa.cast(sender_identities.c.id, sa.Text) == CL.sender_id)
            .outerjoin(campaign_letters, last)
            .outerjoin(planned_jobs, _job_of(campaign_letters, planned_jobs))
            .outerjoin(job_states, job_states.c.id == planned_jobs.c.id)
        )
        columns = (L.email, L.company, CL.step, CL.state, CL.reason, sender_identities.c.address)
        marks = (job_states.c.bounced_at.is_not(None), job_states.c.complained_at.is_not(None))
        query = sa.select(CL.lead_id, *columns, *marks).select_from(joined).order_by(CL.lead_id).limit(_PAGE)
        after = ""
        while True:
            page = query.where(CL.campaign_id == campaign_id)
            with self._db.reading() as tx:
                rows = tx.execute(page.where(CL.lead_id > after) if after else page).all()
            yield from (LeadStanding(*row[1:]) for row in rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def next_due(self, campaign_id: CampaignId) -> datetime | None:
        query = sa.select(sa.func.min(CL.due_at, type_=CL.due_at.type))
        with self._db.reading() as tx:
            return tx.execute(query.where(CL.campaign_id == campaign_id, _OPEN)).scalar_one_or_none()

    def _with_jobs(self, campaign_id: CampaignId) -> sa.Select[Any]:
        joined = (
            sa.select(W.lead_id, W.step, L.timezone, *_JOB_COLUMNS)
            .join_from(campaign_letters, message_jobs, _JOB)
            .join(leads, L.id == W.lead_id)
        )
        return joined.where(W.campaign_id == campaign_id)


_JOB_COLUMNS = (J.state, J.settled_at, J.reason, J.bounced_at, J.complained_at)


def _tenant_planned_by(planner: str, campaign_id: CampaignId) -> sa.Select[Any]:
    """The tenant of a campaign that runs, while nobody else takes the lease or stops it."""
    return (
        sa.select(campaigns.c.tenant_id)
        .select_from(campaigns.join(leases, sa.true()))
        .where(campaigns.c.id == campaign_id, campaigns.c.status == CampaignStatus.RUNNING)
        .where(leases.c.name == PLANNING, leases.c.holder == planner)
        .with_for_update()
    )


def _letters_of(
    tenant_id: TenantId, senders: Sequence[str] | None, receiver: str | None
) -> sa.ColumnElement[bool]:
    of_senders = W.sender_id.in_(senders) if senders is not None else sa.true()
    to_receiver = W.receiver == receiver if receiver is not None else sa.true()
    return sa.and_(W.tenant_id == tenant_id, of_senders, to_receiver)


def _lead(campaign_id: CampaignId, lead_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return CL.campaign_id == campaign_id, CL.lead_id == lead_id


def _letter(campaign_id: CampaignId, lead_id: str, step: int) -> tuple[sa.ColumnElement[bool], ...]:
    return W.campaign_id == campaign_id, W.lead_id == lead_id, W.step == step


def _newest(which: sa.ColumnElement[bool], newest: int) -> sa.Subquery:
    columns = (W.lead_id, W.step, W.dispatch_id, W.address_key)
    return sa.select(*columns).where(which).order_by(W.slot_at.desc()).limit(newest).subquery()


def _job_of(letters: sa.FromClause, jobs: sa.FromClause = message_jobs) -> sa.ColumnElement[bool]:
    own = jobs.c.recipient_key == letters.c.address_key
    return sa.and_(jobs.c.dispatch_id == letters.c.dispatch_id, own)


def _count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _as_end(row: Any) -> LetterEnd:
    bounced, complained = row.bounced_at is not None, row.complained_at is not None
    told = (JobState(row.state), row.settled_at, row.reason, bounced, complained)
    return LetterEnd(row.lead_id, row.step, *told, row.timezone)
