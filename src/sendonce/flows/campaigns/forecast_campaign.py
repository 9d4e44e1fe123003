"""When a campaign will end, and which limit it waits for."""

from __future__ import annotations

from sendonce.domain.campaigns.campaigns import Campaign, CampaignStatus
from sendonce.domain.campaigns.forecast import Forecast, forecast
from sendonce.flows.campaigns.desk import CampaignDesk


def forecast_campaign(desk: CampaignDesk, campaign: Campaign) -> Forecast:
    """Of all its leads, or of those that are still open; held senders are left out."""
    store = desk.store
    open_leads = store.campaigns.lead_states(campaign.id).get("open", 0)
    if campaign.status == CampaignStatus.READY:
        open_leads = store.leads.count(campaign.tenant_id, campaign.direction_id)
    able = [
        limits
        for limits in store.pools.of_direction(campaign.tenant_id, campaign.direction_id)
        if (identity := store.senders.get(limits.sender_id)) is not None
        and identity.removed_at is None
        and desk.hold_of(identity) is None
    ]
    waits = [step.after for step in campaign.steps]
    return forecast(open_leads, waits, able, campaign.window, desk.now().astimezone(desk.zone).date())
