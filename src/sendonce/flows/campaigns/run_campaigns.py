"""One round of all campaigns: see what became of letters, brake where it must be, plan the next ones.

One process at a time does it, under a lease. Whoever dies in the middle is followed by one that finds every
choice written down before the engine heard of it; whoever wakes up after losing the lease settles nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sendonce.domain.campaigns.campaigns import KIND, Campaign, CampaignStatus
from sendonce.domain.engine.dispatches import ended_topic
from sendonce.domain.people.legal_gate import why_blocked
from sendonce.flows.campaigns.apply_brakes import apply_brakes
from sendonce.flows.campaigns.desk import CampaignDesk
from sendonce.flows.campaigns.hand_over import hand_over
from sendonce.flows.campaigns.plan_letters import plan_letters
from sendonce.flows.campaigns.steer_campaign import pause_campaign
from sendonce.flows.campaigns.take_stock import take_last_stock, take_stock
from sendonce.ports.campaigns import PLANNING

_LASTING = timedelta(seconds=10)
_AT_ONCE = 200
LAW = "the legal gate"
"""Who pauses campaigns of a direction that nobody may be written to in."""


def run_campaigns(desk: CampaignDesk, planner: str) -> int:
    """How many letters were planned; none where another process has the lease."""
    lease = _Lease(desk, planner)
    if not lease.is_ours():
        return 0
    _pass_over_ends(desk)
    for campaign in desk.store.campaigns.winding_up():
        take_last_stock(desk, campaign)
    return sum(
        _one_round(desk, campaign, planner) for campaign in desk.store.campaigns.open() if lease.is_ours()
    )


@dataclass
class _Lease:
    """Renewed as a round goes on, however long it takes."""

    desk: CampaignDesk
    planner: str
    renew_at: datetime | None = None

    def is_ours(self) -> bool:
        now = self.desk.store.ledger.now()
        if self.renew_at is not None and now < self.renew_at:
            return True
        self.renew_at = now + _LASTING / 3
        return self.desk.store.leases.take(PLANNING, self.planner, _LASTING)


def _why_blocked(desk: CampaignDesk, campaign: Campaign) -> str | None:
    """A direction may have lost its basis since the start."""
    direction = desk.store.directions.get(campaign.tenant_id, campaign.direction_id)
    return why_blocked(direction) if direction else None


def _pass_over_ends(desk: CampaignDesk) -> None:
    """A dispatch of a step ends whenever nothing of it waits, and goes on with its next letter: no news."""
    for entry_id, _ in desk.store.outbox.due(ended_topic(KIND), _AT_ONCE):
        desk.store.outbox.done(entry_id)


def _one_round(desk: CampaignDesk, campaign: Campaign, planner: str) -> int:
    if blocked := _why_blocked(desk, campaign):
        if campaign.status == CampaignStatus.RUNNING:
            pause_campaign(desk, campaign, blocked, LAW)
        return 0
    hand_over(desk, campaign, desk.store.campaigns.chosen(campaign.id))
    take_stock(desk, campaign)
    if not apply_brakes(desk, campaign) or campaign.status != CampaignStatus.RUNNING:
        return 0
    planned = plan_letters(desk, campaign, planner)
    if not planned and not desk.store.campaigns.lead_states(campaign.id).get("open"):
        desk.store.campaigns.move(campaign.id, CampaignStatus.FINISHED, None, "the campaign itself")
    return planned
