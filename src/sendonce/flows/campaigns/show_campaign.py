"""How a campaign stands: its books, its steps, its senders and its brakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from sendonce.domain.campaigns.brakes import Brake
from sendonce.domain.campaigns.campaigns import Campaign
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.rotation import Record
from sendonce.domain.campaigns.slots import DAY
from sendonce.domain.engine.jobs import Books
from sendonce.domain.engine.sender_identities import SenderState, state_of
from sendonce.domain.engine.senders import SenderHold, words_of_away
from sendonce.flows.campaigns.apply_brakes import bounces_of, complaints_of, deferrals_of, worst
from sendonce.flows.campaigns.desk import CampaignDesk
from sendonce.flows.campaigns.share_accounts import share_account

# The words that programs read: an active sender of the engine is "ok" there.
_STATES = {
    SenderState.ACTIVE: "active",
    SenderState.HELD: "held",
    SenderState.BLOCKED: "blocked",
    SenderState.REMOVED: "held",
}
_NEWEST = 1000


@dataclass(frozen=True, slots=True)
class SenderView:
    address: str
    state: str
    reason: str | None
    hold: SenderHold | None
    sent_24h: int
    allowed_today: int
    record: Record
    limits: SenderLimits


class LimitView(NamedTuple):
    """A limit that a campaign's senders share: letters in any 24 hours, and how many are taken."""

    limit: str
    letters: int
    taken: int

    @property
    def binds(self) -> bool:
        return self.taken >= self.letters


@dataclass(frozen=True, slots=True)
class CampaignView:
    campaign: Campaign
    books: Books
    steps: tuple[tuple[int, Books], ...]
    senders: tuple[SenderView, ...]
    brakes: tuple[Brake, ...]
    leads: dict[str, int]
    limits: tuple[LimitView, ...]


def show_campaign(desk: CampaignDesk, campaign: Campaign) -> CampaignView:
    store = desk.store
    by_step: dict[int, list[Books]] = {step.step: [] for step in campaign.steps}
    for step, _, dispatch_id in store.campaigns.dispatches(campaign.id):
        by_step[step].append(store.jobs.books(dispatch_id))
    steps = tuple((step, _sum(books)) for step, books in by_step.items())
    senders = tuple(
        _sender(desk, limits)
        for limits in store.pools.of_direction(campaign.tenant_id, campaign.direction_id)
    )
    ids = [sender.limits.sender_id for sender in senders]
    brakes = [
        bounces_of(desk, campaign),
        worst([complaints_of(desk, campaign, sender.limits) for sender in senders]),
        worst([deferrals_of(desk, campaign, each) for each in ids]),
    ]
    return CampaignView(
        campaign,
        _sum([books for _, books in steps]),
        steps,
        senders,
        tuple(brake for brake in brakes if brake is not None),
        dict(store.campaigns.lead_states(campaign.id)),
        tuple(_limits(desk, campaign, ids)),
    )


def _limits(desk: CampaignDesk, campaign: Campaign, sender_ids: Sequence[str]) -> Iterator[LimitView]:
    store, now, tenant_id = desk.store, desk.now(), campaign.tenant_id
    tenant = store.tenants.get(tenant_id)
    if tenant is not None and tenant.daily:
        yield LimitView(f"tenant {tenant_id}", tenant.daily, sum(store.campaigns.taken(tenant_id, now - DAY)))
    identities = filter(None, map(store.senders.get, sender_ids))
    for name in sorted({desk.account_of(identity) for identity in identities}):
        account = share_account(desk, name, now)
        if account is not None:
            taken = account.taken[tenant_id]
            yield LimitView(f"account {name}", account.limit.count, sum(account.taken_by_all))
            yield LimitView(f"share of {tenant_id} in {name}", account.shares[tenant_id], sum(taken))


def _sender(desk: CampaignDesk, limits: SenderLimits) -> SenderView:
    store = desk.store
    identity = store.senders.get(limits.sender_id)
    hold = desk.hold_of(identity) if identity else None
    state = _STATES[state_of(identity, hold)]
    now = desk.now()
    sender = limits.tenant_id, limits.sender_id
    sent = store.campaigns.taken(limits.tenant_id, now - DAY, senders=[limits.sender_id]).left
    record = store.campaigns.record_of_sender(*sender, _NEWEST)
    address = identity.address if identity else limits.sender_id
    away = desk.away_of(identity) if identity else None
    reason = hold.reason if hold else None
    if identity is not None and away is not None and hold is None:
        reason = words_of_away(desk.keys_of(identity), away)
    if identity is None or identity.removed_at is not None:
        reason = "it was removed; 'sendonce sender add' brings it back, and its letters go on"
    allowed = limits.allowed_on(now.astimezone(desk.zone).date())
    return SenderView(address, state, reason, hold, sent, allowed, record, limits)


def _sum(books: list[Books] | tuple[Books, ...]) -> Books:
    return Books(**{each.name: sum(getattr(book, each.name) for book in books) for each in fields(Books)})
