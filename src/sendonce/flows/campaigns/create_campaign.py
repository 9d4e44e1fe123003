"""Make a campaign of what its file says, once nothing in it can go wrong any more."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from sendonce.domain.campaigns.brakes import Limits
from sendonce.domain.campaigns.campaigns import Campaign, NewCampaign
from sendonce.domain.engine.tenants import TenantId
from sendonce.flows.people.add_client import require_direction
from sendonce.ports.campaigns import CampaignStore


def create_campaign(store: CampaignStore, tenant_id: TenantId, new: NewCampaign, actor: str) -> Campaign:
    """It is ready, and waits to be started."""
    require_direction(store, tenant_id, new.direction_id)
    for image in chain.from_iterable(step.images for step in new.steps):
        store.assets.put(*image)
    strict = replace(new, brakes=Limits().tightened(new.brakes))
    return store.campaigns.create(tenant_id, strict, actor)
