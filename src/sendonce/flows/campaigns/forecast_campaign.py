"""When a campaign will end, and which limit it waits for."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.domain.campaigns.campaigns import Campaign, CampaignStatus
from sendonce.domain.campaigns.forecast import Binding, Cap, Forecast, forecast
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.flows.campaigns.desk import CampaignDesk


def forecast_campaign(desk: CampaignDesk, campaign: Campaign) -> Forecast:
    """Of the letters to all its leads, or of those that its open leads have not had; held senders are left
    out."""
    store = desk.store
    begun = dict(store.campaigns.open_leads(campaign.id))
    fresh = begun.pop(0, 0)
    if campaign.status == CampaignStatus.READY:
        fresh = store.leads.count(campaign.tenant_id, campaign.direction_id)
    able = {
        limits.sender_id: (limits, identity)
        for limits in store.pools.of_direction(campaign.tenant_id, campaign.direction_id)
        if (identity := store.senders.get(limits.sender_id)) is not None
        and identity.removed_at is None
        and desk.hold_of(identity) is None
    }
    waits = [step.after for step in campaign.steps]
    limits = [each for each, _ in able.values()]
    caps = _caps(desk, campaign, [identity for _, identity in able.values()])
    today = desk.now().astimezone(desk.zone).date()
    return forecast(fresh, waits, limits, campaign.window, today, caps, begun)


def _caps(desk: CampaignDesk, campaign: Campaign, senders: Sequence[SenderIdentity]) -> list[Cap]:
    """Of its tenant, and of the accounts that it shares with all tenants that have a campaign open."""
    tenants = {tenant.id: tenant for tenant in desk.store.tenants.all()}
    own = tenants[campaign.tenant_id]
    every = frozenset(each.id for each in senders)
    caps = [Cap(every, own.daily, Binding.TENANT)] if own.daily else []
    beside = {each.tenant_id for each in desk.store.campaigns.open()} | {own.id}
    weights = sum(tenants[tenant_id].weight for tenant_id in beside)
    for name, count in desk.account_limits.items():
        theirs = frozenset(each.id for each in senders if desk.account_of(each) == name)
        caps.append(Cap(theirs, max(1, count * own.weight // weights), Binding.ACCOUNT))
    return caps
