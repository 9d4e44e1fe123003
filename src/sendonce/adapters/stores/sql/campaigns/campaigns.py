"""Campaigns on SQL: made, started, moved from status to status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    campaign_dispatches,
    campaign_leads,
    campaign_letters,
    campaign_steps,
    campaigns,
    leads,
    letters,
)
from sendonce.adapters.stores.sql.audit import insert_audit
from sendonce.adapters.stores.sql.campaigns.progress import SqlProgress
from sendonce.adapters.stores.sql.letters import insert_letter
from sendonce.adapters.stores.sql.rows import insert_for, new_id
from sendonce.domain.campaigns.brakes import Limits
from sendonce.domain.campaigns.campaigns import (
    ARROWS,
    Campaign,
    CampaignId,
    CampaignStatus,
    NewCampaign,
    Step,
)
from sendonce.domain.campaigns.windows import Window
from sendonce.domain.engine.tenants import DispatchId, TenantId
from sendonce.errors import NotFound, RefusedByRule

C, S, L, CL, CD = campaigns.c, campaign_steps.c, leads.c, campaign_leads.c, campaign_dispatches.c
W = campaign_letters.c
# In the words of the indexes.
OPEN_LEAD = sa.text("campaign_leads.state = 'open'")


class SqlCampaigns(SqlProgress):
    def create(self, tenant_id: TenantId, new: NewCampaign, actor: str) -> Campaign:
        with self._db.writing() as tx:
            now = self._db.now(tx)
            row = {
                "id": new_id(now),
                "tenant_id": tenant_id,
                "direction_id": new.direction_id,
                "name": new.name,
                "window": _window_row(new.window),
                "brakes": {name: getattr(new.brakes, name) for name in Limits.__slots__},
                "created_at": now,
                "updated_at": now,
            }
            put = insert_for(self._db)(campaigns).values(row)
            put = put.on_conflict_do_nothing(index_elements=["tenant_id", "name"]).returning(C.id)
            if tx.execute(put).one_or_none() is None:
                raise RefusedByRule(
                    f"{tenant_id} has a campaign {new.name!r} already: give this one another name, or delete "
                    "that one with 'sendonce campaign delete' if it was never started."
                )
            for number, step in enumerate(new.steps, 1):
                letter_id = insert_letter(tx, tenant_id, step.letter, now)
                wait = int(step.after.total_seconds())
                values = {"step": number, "letter_id": letter_id, "after_seconds": wait}
                tx.execute(campaign_steps.insert().values(campaign_id=row["id"], **values))
            insert_audit(tx, now, actor, "create_campaign", str(row["id"]), {"name": new.name})
            return _one(tx, C.id == row["id"])

    def delete(self, campaign_id: CampaignId, actor: str) -> bool:
        with self._db.writing() as tx:
            campaign = _one(tx, C.id == campaign_id, lock=True)
            if campaign.started_at is not None:
                return False
            tx.execute(campaign_steps.delete().where(S.campaign_id == campaign_id))
            tx.execute(letters.delete().where(letters.c.id.in_([step.letter_id for step in campaign.steps])))
            tx.execute(campaigns.delete().where(C.id == campaign_id))
            insert_audit(tx, self._db.now(tx), actor, "delete_campaign", campaign_id, {"name": campaign.name})
            return True

    def get(self, tenant_id: TenantId, name: str) -> Campaign | None:
        with self._db.reading() as tx:
            found = _all(tx, sa.and_(C.tenant_id == tenant_id, sa.or_(C.id == name, C.name == name)))
            return found[0] if found else None

    def find(self, name: str) -> Campaign | None:
        with self._db.reading() as tx:
            found = _all(tx, sa.or_(C.id == name, C.name == name))
            return found[0] if len(found) == 1 else None

    def all(self, tenant_id: TenantId | None = None, limit: int = 100) -> Sequence[Campaign]:
        with self._db.reading() as tx:
            which = C.tenant_id == tenant_id if tenant_id is not None else sa.true()
            return _all(tx, which, newest=limit)

    def open(self) -> Sequence[Campaign]:
        with self._db.reading() as tx:
            return _all(tx, sa.text("campaigns.status IN ('running', 'paused')"))

    def winding_up(self) -> Sequence[Campaign]:
        unsettled = sa.select(W.campaign_id).where(sa.text("campaign_letters.state <> 'over'"))
        over = C.status.in_([CampaignStatus.FINISHED, CampaignStatus.STOPPED])
        with self._db.reading() as tx:
            return _all(tx, sa.and_(C.id.in_(unsettled), over))

    def start(self, campaign_id: CampaignId, now: datetime, actor: str) -> int:
        with self._db.writing() as tx:
            campaign = _one(tx, C.id == campaign_id, lock=True)
            if campaign.status != CampaignStatus.READY:
                raise RefusedByRule(f"The campaign {campaign.name!r} is {campaign.status}, not ready.")
            _refuse_shared_leads(tx, campaign)
            counted = {"preserve_rowcount": True}
            enrolled = tx.execute(_enrolment(campaign, now), execution_options=counted).rowcount
            if enrolled == 0:
                raise RefusedByRule(
                    f"The direction {campaign.direction_id} of {campaign.tenant_id} has no leads to write "
                    "to: 'sendonce leads import' brings them."
                )
            _move(tx, campaign, CampaignStatus.RUNNING, None, actor, self._db.now(tx))
            return enrolled

    def move(
        self,
        campaign_id: CampaignId,
        to: CampaignStatus,
        reason: str | None,
        actor: str,
        judged_from: datetime | None = None,
    ) -> bool:
        with self._db.writing() as tx:
            campaign = _one(tx, C.id == campaign_id, lock=True)
            if to not in ARROWS[campaign.status]:
                return False
            _move(tx, campaign, to, reason, actor, self._db.now(tx))
            if judged_from is not None:
                tx.execute(campaigns.update().where(C.id == campaign_id).values(judged_from=judged_from))
            if to in (CampaignStatus.STOPPED, CampaignStatus.FINISHED):
                left = campaign_leads.update().where(CL.campaign_id == campaign_id, OPEN_LEAD)
                tx.execute(left.values(state="stopped", reason=reason or str(to), due_at=None))
            return True

    def dispatch_of(self, campaign_id: CampaignId, step: int, sender_id: str) -> DispatchId | None:
        query = sa.select(CD.dispatch_id).where(
            CD.campaign_id == campaign_id, CD.step == step, CD.sender_id == sender_id
        )
        with self._db.reading() as tx:
            return tx.execute(query).scalar_one_or_none()

    def keep_dispatch(
        self, campaign_id: CampaignId, step: int, sender_id: str, dispatch_id: DispatchId
    ) -> DispatchId:
        key = {"campaign_id": campaign_id, "step": step, "sender_id": sender_id}
        with self._db.writing() as tx:
            put = insert_for(self._db)(campaign_dispatches).values(**key, dispatch_id=dispatch_id)
            tx.execute(put.on_conflict_do_nothing(index_elements=list(key)))
        kept = self.dispatch_of(campaign_id, step, sender_id)
        assert kept is not None
        return kept

    def dispatches(self, campaign_id: CampaignId) -> Sequence[tuple[int, str, DispatchId]]:
        query = sa.select(CD.step, CD.sender_id, CD.dispatch_id).where(CD.campaign_id == campaign_id)
        with self._db.reading() as tx:
            return [(row[0], row[1], row[2]) for row in tx.execute(query.order_by(CD.step, CD.sender_id))]


def _move(
    tx: Connection, campaign: Campaign, to: CampaignStatus, reason: str | None, actor: str, now: datetime
) -> None:
    changes: dict[str, Any] = {"status": to, "reason": reason, "updated_at": now}
    if to == CampaignStatus.RUNNING and campaign.started_at is None:
        changes["started_at"] = now
    if not ARROWS[to]:
        changes["ended_at"] = now
    tx.execute(campaigns.update().where(C.id == campaign.id).values(changes))
    insert_audit(tx, now, actor, f"campaign_{to}", campaign.id, {"from": campaign.status, "reason": reason})


def _refuse_shared_leads(tx: Connection, campaign: Campaign) -> None:
    """A lead is written to by one campaign at a time: two would not know of each other's letters."""
    query = (
        sa.select(sa.func.count(), sa.func.min(C.name))
        .select_from(campaign_leads.join(leads, L.id == CL.lead_id).join(campaigns, C.id == CL.campaign_id))
        .where(OPEN_LEAD, L.tenant_id == campaign.tenant_id, L.direction_id == campaign.direction_id)
    )
    count, other = tx.execute(query).one()
    if count:
        raise RefusedByRule(
            f"{count} of its leads are in the campaign {other!r}, which is not over: wait for its end, or "
            "stop it with 'sendonce campaign stop'."
        )


def _enrolment(campaign: Campaign, now: datetime) -> sa.Insert:
    """All leads of its direction that may be written to, due now."""
    may_be_written_to = sa.and_(
        L.tenant_id == campaign.tenant_id, L.direction_id == campaign.direction_id, L.stopped.is_(None)
    )
    due = sa.literal(now, C.started_at.type)
    each = sa.select(sa.literal(campaign.id, C.id.type), L.id, due).where(may_be_written_to)
    return campaign_leads.insert().from_select(["campaign_id", "lead_id", "due_at"], each)


def _one(tx: Connection, which: sa.ColumnElement[bool], *, lock: bool = False) -> Campaign:
    if lock:
        tx.execute(sa.select(C.id).where(which).with_for_update()).all()
    found = _all(tx, which)
    if not found:
        raise NotFound("There is no such campaign: 'sendonce campaign list' shows them.")
    return found[0]


def _all(
    tx: Connection, which: sa.ColumnElement[bool] | sa.TextClause, newest: int | None = None
) -> list[Campaign]:
    query = sa.select(campaigns).where(which).order_by(C.id.desc() if newest else C.id)
    rows = tx.execute(query.limit(newest) if newest else query).all()
    steps: dict[str, list[Step]] = {row.id: [] for row in rows}
    query = sa.select(campaign_steps).where(S.campaign_id.in_(list(steps))).order_by(S.step)
    for step in tx.execute(query):
        wait = timedelta(seconds=step.after_seconds)
        steps[step.campaign_id].append(Step(step.step, step.letter_id, wait))
    return [_as_campaign(row, steps[row.id]) for row in rows]


def _as_campaign(row: Row[Any], steps: Sequence[Step]) -> Campaign:
    return Campaign(
        row.id,
        row.tenant_id,
        row.direction_id,
        row.name,
        CampaignStatus(row.status),
        row.reason,
        _as_window(row.window),
        Limits(**row.brakes),
        tuple(steps),
        row.created_at,
        row.started_at,
        row.ended_at,
        row.judged_from,
    )


def _window_row(window: Window) -> dict[str, Any]:
    return {
        "days": sorted(window.days),
        "from": window.opens.isoformat(),
        "to": window.closes.isoformat(),
        "timezone": window.timezone,
        "holidays": sorted(day.isoformat() for day in window.holidays),
    }


def _as_window(row: Mapping[str, Any]) -> Window:
    return Window(
        frozenset(row["days"]),
        time.fromisoformat(row["from"]),
        time.fromisoformat(row["to"]),
        row["timezone"],
        frozenset(date.fromisoformat(day) for day in row["holidays"]),
    )
