"""Add a sender, and put it into the pool of a direction."""

from __future__ import annotations

from dataclasses import replace

from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.flows.engine.add_sender import add_sender
from sendonce.flows.people.add_client import require_direction, require_tenant
from sendonce.ports.campaigns import CampaignStore


def add_pool_sender(
    store: CampaignStore,
    tenant: str,
    new: NewSender,
    pool: SenderLimits | None,
    own_address: str,
    actor: str,
) -> SenderIdentity:
    """Without a ``pool`` it writes for mailouts only."""
    tenant_id = require_tenant(store, tenant)
    if pool is not None:
        require_direction(store, tenant_id, pool.direction_id)
    added = add_sender(store, tenant_id, new, own_address, actor)
    if pool is not None:
        store.pools.put(tenant_id, replace(pool, sender_id=added.id, tenant_id=tenant_id))
    return added
