"""Plan the next letters of campaigns: who writes to whom, and when.

Only a little ahead: brakes, holds and answers of today then count for all that is still to come, and a worker
that was away for an hour does not find an hour's letters waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from zoneinfo import ZoneInfo

from sendonce.domain.campaigns.campaigns import KIND, Campaign, ChosenLetter, DueLead, owner_of
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.rotation import Candidate, Rotation, reputation
from sendonce.domain.campaigns.slots import Quota, gap
from sendonce.domain.campaigns.windows import Window
from sendonce.domain.engine.dispatches import NewDispatch
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.tenants import DispatchId
from sendonce.flows.campaigns.desk import CampaignDesk
from sendonce.flows.campaigns.hand_over import hand_over
from sendonce.flows.campaigns.quotas import Quotas

_AT_ONCE = 500
_NEWEST = 200


@dataclass
class _Sender:
    """A sender of the pool, as it stands in the middle of a round. The first quota is that of its day."""

    identity: SenderIdentity
    limits: SenderLimits
    quotas: Sequence[Quota]
    reputation: float
    allowed: int
    ready_at: datetime

    def is_free(self, until: datetime) -> bool:
        return self.ready_at <= until and all(quota.left > 0 for quota in self.quotas)

    def move_on(self, slot: datetime, opening: timedelta, seed: str, zone: ZoneInfo) -> None:
        self.ready_at = slot + gap(opening, self.allowed, self.limits.pace, seed)
        self.limits = self.limits.used_on(slot.astimezone(zone).date())


def plan_letters(desk: CampaignDesk, campaign: Campaign, planner: str) -> int:
    """How many letters were planned; none where ``planner`` does not plan any more."""
    round_ = _Round(desk, campaign)
    letters = round_.choose()
    if not letters or not desk.store.campaigns.choose(campaign.id, letters, round_.standings(), planner):
        return 0
    hand_over(desk, campaign, letters)
    return len(letters)


class _Round:
    def __init__(self, desk: CampaignDesk, campaign: Campaign) -> None:
        self._desk = desk
        self._campaign = campaign
        self._opening = _length(campaign.window)
        self._now = desk.now()
        self._until = self._now + desk.horizon
        self._quotas = Quotas(desk, self._now)
        self._senders = {sender.identity.id: sender for sender in self._able_senders()}
        self._rotation = Rotation({name: each.limits.credit for name, each in self._senders.items()})
        self._begun: Counter[str] = Counter()

    def standings(self) -> list[SenderLimits]:
        credits = self._rotation.credits
        return [replace(s.limits, credit=credits.get(name, 0.0)) for name, s in self._senders.items()]

    def choose(self) -> list[ChosenLetter]:
        free = [name for name, sender in self._senders.items() if sender.is_free(self._until)]
        if not free:
            return []
        store = self._desk.store.campaigns
        due = store.due(self._campaign.id, self._now, free, self._desk.per_company, _AT_ONCE)
        chosen: list[ChosenLetter] = []
        for lead in due:
            letter = self._letter_to(lead)
            if letter is not None:
                chosen.append(letter)
            elif not any(sender.is_free(self._until) for sender in self._senders.values()):
                break
        return chosen

    def _letter_to(self, lead: DueLead) -> ChosenLetter | None:
        """None where its sender, its receiver or its own clock has no time for it yet."""
        window = self._campaign.window
        zone = window.zone(lead.timezone, self._desk.zone)
        if not window.is_open(self._now, zone) or self._has_enough_of(lead):
            return None
        receiver = self._quotas.to_receiver(self._campaign, lead.receiver)
        if any(quota.left <= 0 for quota in receiver):
            return None
        sender = self._sender_for(lead)
        if sender is None:
            return None
        slot = max(self._now, sender.ready_at)
        if not window.is_open(slot, zone):
            return None
        sender.move_on(slot, self._opening, f"{self._campaign.id}{lead.lead_id}{lead.step}", zone)
        for quota in chain(sender.quotas, receiver):
            quota.left -= 1
        self._begun[lead.company_key] += lead.step == 0
        step = lead.step + 1
        dispatch_id = self._dispatch(step, sender.identity.id)
        told = (lead.lead_id, lead.email, lead.fields, lead.timezone, lead.receiver)
        return ChosenLetter(*told, step, sender.identity.id, dispatch_id, slot)

    def _has_enough_of(self, lead: DueLead) -> bool:
        """Whether as many of its company are written to as may be at a time."""
        return lead.step == 0 and lead.colleagues + self._begun[lead.company_key] >= self._desk.per_company

    def _sender_for(self, lead: DueLead) -> _Sender | None:
        """One that is free. Follow-ups stay with the sender of the first letter."""
        free = {name: each for name, each in self._senders.items() if each.is_free(self._until)}
        if lead.sender_id is not None:
            return free.get(lead.sender_id)
        picked = self._rotation.pick(
            [
                Candidate(
                    name, each.identity.address.rpartition("@")[2], each.quotas[0].left, each.reputation
                )
                for name, each in free.items()
            ]
        )
        return free[picked] if picked else None

    def _able_senders(self) -> Sequence[_Sender]:
        """The senders of the direction that may be tried now, and are not removed."""
        store, campaign = self._desk.store, self._campaign
        able = []
        for limits in store.pools.of_direction(campaign.tenant_id, campaign.direction_id):
            identity = store.senders.get(limits.sender_id)
            if identity is None or identity.removed_at is not None:
                continue
            if self._desk.may_try(identity):
                able.append(self._stand(identity, limits))
        return able

    def _stand(self, identity: SenderIdentity, limits: SenderLimits) -> _Sender:
        store, whose = self._desk.store.campaigns, identity.tenant_id
        allowed = limits.allowed_on(self._now.astimezone(self._desk.zone).date())
        record = store.record_of_sender(whose, identity.id, _NEWEST)
        last = store.last_slot(whose, sender=identity.id)
        between = gap(self._opening, allowed, limits.pace, f"{identity.id}{last}")
        ready_at = last + between if last else self._now
        quotas = self._quotas.of_sender(identity, limits, allowed)
        return _Sender(identity, limits, quotas, reputation(record), allowed, ready_at)

    def _dispatch(self, step: int, sender_id: str) -> DispatchId:
        store, campaign = self._desk.store, self._campaign
        known = store.campaigns.dispatch_of(campaign.id, step, sender_id)
        if known is not None:
            return known
        of_step = campaign.step(step)
        assert of_step is not None
        new = NewDispatch(KIND, owner_of(campaign.id, step), of_step.letter_id, sender_id)
        opened = store.dispatches.open(campaign.tenant_id, new)
        return store.campaigns.keep_dispatch(campaign.id, step, sender_id, opened.id)


def _length(window: Window) -> timedelta:
    """How long a day's opening is on the clock."""
    opens, closes = (timedelta(hours=at.hour, minutes=at.minute) for at in (window.opens, window.closes))
    return closes - opens
