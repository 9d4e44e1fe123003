"""What every limit still allows in a round: the same quota for all letters that count for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sendonce.domain.campaigns.brakes import deferral_brake
from sendonce.domain.campaigns.campaigns import Campaign
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.receivers import Receiver
from sendonce.domain.campaigns.slots import DAY, MINUTE, Limit, Quota, hourly
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.tenants import TenantId
from sendonce.flows.campaigns.desk import CampaignDesk
from sendonce.flows.campaigns.share_accounts import share_account

_PUT_OFF_OF = 50
PROBES = Limit(1, MINUTE * 30)
"""All that goes to a receiver that puts most letters off, until it takes them again."""


class Quotas:
    """Of one campaign, as they stand at the beginning of its round."""

    def __init__(self, desk: CampaignDesk, now: datetime) -> None:
        self._desk = desk
        self._now = now
        self._store = desk.store.campaigns
        self._receivers: dict[tuple[TenantId, str], Sequence[Quota]] = {}
        self._tenants: dict[TenantId, Sequence[Quota]] = {}
        self._accounts: dict[str, Sequence[Quota]] = {}

    def of_sender(self, identity: SenderIdentity, limits: SenderLimits, allowed: int) -> Sequence[Quota]:
        """The first is that of its day, on which so many letters are ``allowed``."""
        caps = [Limit(allowed, DAY)] + ([hourly(limits.per_hour)] if limits.per_hour else [])
        own = [self._quota(cap, limits.tenant_id, senders=[limits.sender_id]) for cap in caps]
        return [*own, *self._of_tenant(limits.tenant_id), *self._of_account(identity)]

    def _of_tenant(self, tenant_id: TenantId) -> Sequence[Quota]:
        if tenant_id not in self._tenants:
            tenant = self._desk.store.tenants.get(tenant_id)
            daily = tenant.daily if tenant else None
            self._tenants[tenant_id] = [self._quota(Limit(daily, DAY), tenant_id)] if daily else []
        return self._tenants[tenant_id]

    def _of_account(self, identity: SenderIdentity) -> Sequence[Quota]:
        """The account's own, and its tenant's share of it."""
        tenant_id, name = identity.tenant_id, self._desk.account_of(identity)
        if name not in self._accounts:
            account = share_account(self._desk, name, self._now)
            self._accounts[name] = (
                []
                if account is None
                else [
                    Quota(account.limit.room(account.taken_by_all)),
                    Quota(account.shares[tenant_id] - sum(account.taken[tenant_id])),
                ]
            )
        return self._accounts[name]

    def to_receiver(self, campaign: Campaign, name: str) -> Sequence[Quota]:
        """Of all letters of a tenant to this receiver."""
        whose = campaign.tenant_id, name
        if whose not in self._receivers:
            limit = Limit(self._desk.receiver_limits[Receiver(name)], MINUTE)
            usual = self._quota(limit, campaign.tenant_id, receiver=name)
            self._receivers[whose] = [usual, *self._probes(campaign, name)]
        return self._receivers[whose]

    def _quota(
        self,
        limit: Limit,
        tenant_id: TenantId,
        *,
        senders: Sequence[str] | None = None,
        receiver: str | None = None,
    ) -> Quota:
        since = self._now - limit.stretch
        return Quota(limit.room(self._store.taken(tenant_id, since, senders=senders, receiver=receiver)))

    def _probes(self, campaign: Campaign, name: str) -> Sequence[Quota]:
        """Of a receiver that puts letters off. Those that wait there keep no probe from it."""
        record = self._store.record_to_receiver(campaign.tenant_id, name, _PUT_OFF_OF)
        if not deferral_brake(record.deferrals, record.letters, campaign.brakes).tripped:
            return []
        last = self._store.last_slot(campaign.tenant_id, receiver=name)
        return [Quota(PROBES.count if last is None or last <= self._now - PROBES.stretch else 0)]
