"""Share the letters a day of an account among the tenants that send from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sendonce.domain.campaigns.accounts import Claim, fair_shares
from sendonce.domain.campaigns.campaigns import CampaignStatus
from sendonce.domain.campaigns.slots import DAY, Limit, Taken
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.tenants import TenantId
from sendonce.flows.campaigns.desk import CampaignDesk


@dataclass(frozen=True, slots=True)
class SharedAccount:
    """``shares`` are the letters that each tenant may have taken in any 24 hours."""

    name: str
    limit: Limit
    taken: Mapping[TenantId, Taken]
    shares: Mapping[TenantId, int]

    @property
    def taken_by_all(self) -> Taken:
        each = self.taken.values()
        return Taken(sum(one.under_way for one in each), sum(one.left for one in each))


def share_account(desk: CampaignDesk, name: str, now: datetime) -> SharedAccount | None:
    """None for an account without a limit."""
    if name not in desk.account_limits:
        return None
    limit = Limit(desk.account_limits[name], DAY)
    senders: defaultdict[TenantId, list[SenderIdentity]] = defaultdict(list)
    for identity in desk.store.senders.all():
        if desk.account_of(identity) == name:
            senders[identity.tenant_id].append(identity)
    taken = {
        tenant_id: desk.store.campaigns.taken(tenant_id, now - DAY, senders=[each.id for each in own])
        for tenant_id, own in senders.items()
    }
    claims = {
        tenant_id: _claim(desk, tenant_id, own, taken[tenant_id], limit, now)
        for tenant_id, own in senders.items()
    }
    return SharedAccount(name, limit, taken, fair_shares(limit.count, claims))


def _claim(
    desk: CampaignDesk,
    tenant_id: TenantId,
    senders: Sequence[SenderIdentity],
    taken: Taken,
    limit: Limit,
    now: datetime,
) -> Claim:
    """It wants what it has taken and what is due within a day, as far as its own limits go."""
    store = desk.store
    tenant = store.tenants.get(tenant_id)
    assert tenant is not None
    waiting = sum(
        store.campaigns.due_soon(campaign.id, now + DAY, limit.count)
        for campaign in store.campaigns.open()
        if campaign.tenant_id == tenant_id and campaign.status == CampaignStatus.RUNNING
    )
    has = sum(taken)
    able = sum(_allowed(desk, each, now) for each in senders)
    wanted = min(has + waiting, able, tenant.daily or able, limit.count)
    return Claim(tenant.weight, max(has, wanted))


def _allowed(desk: CampaignDesk, identity: SenderIdentity, now: datetime) -> int:
    """Today, of a sender that may send."""
    pool = desk.store.pools.get(identity.tenant_id, identity.id)
    if pool is None or identity.removed_at is not None:
        return 0
    if desk.hold_of(identity) is not None:
        return 0
    return pool.allowed_on(now.astimezone(desk.zone).date())
