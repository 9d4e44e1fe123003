"""Plan the next letters of a campaign: who writes to whom, and when.

Only a little ahead: brakes, holds and answers of today then count for all that is still to come, and a worker
that was away for an hour does not find an hour's letters waiting.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sendonce.domain.campaigns.brakes import deferral_brake
from sendonce.domain.campaigns.campaigns import KIND, Campaign, ChosenLetter, DueLead, thread_of
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.receivers import Receiver
from sendonce.domain.campaigns.rotation import Candidate, Rotation, reputation
from sendonce.domain.campaigns.slots import DAY, MINUTE, Limit, Timetable, gap, hourly
from sendonce.domain.campaigns.windows import Window
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob, Thread
from sendonce.domain.engine.sender_identities import SenderIdentity
from sendonce.domain.engine.tenants import DispatchId
from sendonce.flows.campaigns.desk import CampaignDesk

_AT_ONCE = 500
_NEWEST = 200
_PUT_OFF_OF = 50
PROBES = Limit(1, timedelta(minutes=30))
"""All that goes to a receiver that puts most letters off, until it takes them again."""


@dataclass
class _Sender:
    """A sender of the pool, as it stands in the middle of a round."""

    identity: SenderIdentity
    limits: SenderLimits
    timetable: Timetable
    reputation: float
    allowed: int
    opening: timedelta
    ready_at: datetime

    def left(self, now: datetime) -> int:
        return self.allowed - sum(slot > now - DAY for slot in self.timetable.taken)

    def earliest(self, after: datetime) -> datetime:
        return self.timetable.earliest(max(after, self.ready_at))

    def take(self, slot: datetime, seed: str, zone: ZoneInfo) -> None:
        self.timetable.take(slot)
        self.ready_at = slot + gap(self.opening, self.allowed, self.limits.pace, seed)
        self.limits = self.limits.used_on(slot.astimezone(zone).date())


def plan_letters(desk: CampaignDesk, campaign: Campaign) -> int:
    """How many letters were planned."""
    round_ = _Round(desk, campaign)
    letters = round_.choose()
    if letters:
        desk.store.campaigns.choose(campaign.id, letters, round_.standings())
        hand_over(desk, campaign, letters)
    return len(letters)


class _Round:
    def __init__(self, desk: CampaignDesk, campaign: Campaign) -> None:
        self._desk = desk
        self._campaign = campaign
        self._now = desk.now()
        self._until = self._now + desk.horizon
        self._senders = {sender.identity.id: sender for sender in self._able_senders()}
        self._rotation = Rotation({name: each.limits.credit for name, each in self._senders.items()})
        self._receivers: dict[str, Timetable] = {}
        self._begun: Counter[str] = Counter()

    def standings(self) -> list[SenderLimits]:
        credits = self._rotation.credits
        return [replace(s.limits, credit=credits.get(name, 0.0)) for name, s in self._senders.items()]

    def choose(self) -> list[ChosenLetter]:
        free = [name for name, sender in self._senders.items() if self._is_free(sender)]
        if not free:
            return []
        store = self._desk.store.campaigns
        due = store.due(self._campaign.id, self._now, free, self._desk.per_company, _AT_ONCE)
        chosen: list[ChosenLetter] = []
        for lead in due:
            letter = self._letter_to(lead)
            if letter is not None:
                chosen.append(letter)
            elif not any(self._is_free(sender) for sender in self._senders.values()):
                break
        return chosen

    def _letter_to(self, lead: DueLead) -> ChosenLetter | None:
        """None where its sender, its receiver or its own clock has no time for it yet."""
        window = self._campaign.window
        zone = lead.zone(window, self._desk.zone)
        if not window.is_open(self._now, zone) or self._has_enough_of(lead):
            return None
        receiver = self._receiver(lead.receiver)
        sender = self._sender_for(lead)
        if sender is None:
            return None
        slot = max(sender.earliest(self._now), receiver.earliest(self._now))
        if slot > self._until or not window.is_open(slot, zone):
            return None
        sender.take(slot, f"{self._campaign.id}{lead.lead_id}{lead.step}", zone)
        receiver.take(slot)
        self._begun[lead.company_key] += lead.step == 0
        step = lead.step + 1
        dispatch_id = self._dispatch(step, sender.identity.id)
        told = (lead.lead_id, lead.email, lead.fields, lead.receiver)
        return ChosenLetter(*told, step, sender.identity.id, dispatch_id, slot)

    def _has_enough_of(self, lead: DueLead) -> bool:
        """Whether as many of its company are written to as may be at a time."""
        return lead.step == 0 and lead.colleagues + self._begun[lead.company_key] >= self._desk.per_company

    def _sender_for(self, lead: DueLead) -> _Sender | None:
        """Follow-ups stay with the sender of the first letter."""
        if lead.sender_id is not None:
            return self._senders.get(lead.sender_id)
        picked = self._rotation.pick(
            [
                Candidate(name, sender.identity.address.rpartition("@")[2], left, sender.reputation)
                for name, sender in self._senders.items()
                if (left := sender.left(self._now)) > 0 and self._is_free(sender)
            ]
        )
        return self._senders[picked] if picked else None

    def _is_free(self, sender: _Sender) -> bool:
        return sender.earliest(self._now) <= self._until

    def _able_senders(self) -> Sequence[_Sender]:
        """The senders of the direction that are neither held nor removed."""
        store, campaign = self._desk.store, self._campaign
        able = []
        for limits in store.pools.of_direction(campaign.tenant_id, campaign.direction_id):
            identity = store.senders.get(limits.sender_id)
            if identity is None or identity.removed_at is not None:
                continue
            if self._desk.hold_of(identity) is None:
                able.append(self._stand(identity, limits))
        return able

    def _stand(self, identity: SenderIdentity, limits: SenderLimits) -> _Sender:
        zone = self._desk.zone
        allowed = limits.allowed_on(self._now.astimezone(zone).date())
        caps = [Limit(allowed, DAY)] + ([hourly(limits.per_hour)] if limits.per_hour else [])
        since = self._now - DAY - self._desk.slack
        taken = self._desk.store.campaigns.slots_of_sender(identity.tenant_id, identity.id, since)
        record = self._desk.store.campaigns.record_of_sender(identity.tenant_id, identity.id, _NEWEST)
        timetable = Timetable.of(caps, self._desk.slack, taken)
        opening = _length(self._campaign.window)
        last = timetable.taken[-1] if timetable.taken else None
        seed = f"{identity.id}{last}"
        ready_at = last + gap(opening, allowed, limits.pace, seed) if last else self._now
        return _Sender(identity, limits, timetable, reputation(record), allowed, opening, ready_at)

    def _receiver(self, name: str) -> Timetable:
        if name not in self._receivers:
            store, tenant_id = self._desk.store.campaigns, self._campaign.tenant_id
            limits = [Limit(self._desk.receiver_limits[Receiver(name)], MINUTE)]
            record = store.record_to_receiver(tenant_id, name, _PUT_OFF_OF)
            if deferral_brake(record.deferrals, record.letters, self._campaign.brakes).tripped:
                limits.append(PROBES)
            since = self._now - PROBES.stretch - self._desk.slack
            taken = store.slots_to_receiver(tenant_id, name, since)
            self._receivers[name] = Timetable.of(limits, self._desk.slack, taken)
        return self._receivers[name]

    def _dispatch(self, step: int, sender_id: str) -> DispatchId:
        store, campaign = self._desk.store, self._campaign
        known = store.campaigns.dispatch_of(campaign.id, step, sender_id)
        if known is not None:
            return known
        of_step = campaign.step(step)
        assert of_step is not None
        new = NewDispatch(KIND, f"{campaign.id}/{step}", of_step.letter_id, sender_id)
        opened = store.dispatches.open(campaign.tenant_id, new)
        return store.campaigns.keep_dispatch(campaign.id, step, sender_id, opened.id)


def hand_over(desk: CampaignDesk, campaign: Campaign, letters: Sequence[ChosenLetter]) -> None:
    """Give chosen letters to the engine; a letter that it has already stays one."""
    threads = _threads(desk, campaign, letters)
    by_dispatch: defaultdict[DispatchId, list[ChosenLetter]] = defaultdict(list)
    for letter in letters:
        by_dispatch[letter.dispatch_id].append(letter)
    for dispatch_id, group in by_dispatch.items():
        jobs = [
            NewJob(
                parse_address(letter.email),
                dict(letter.fields),
                thread=threads.get(letter.lead_id),
                due_at=desk.clock.real(letter.slot_at),
                priority=-letter.step,
            )
            for letter in group
        ]
        desk.store.dispatches.plan(dispatch_id, jobs)
        desk.store.dispatches.run(dispatch_id)
        desk.store.campaigns.planned(campaign.id, group)


def _threads(
    desk: CampaignDesk, campaign: Campaign, letters: Sequence[ChosenLetter]
) -> dict[str, Thread | None]:
    """Follow-ups answer to the letters before them."""
    followed = {letter.lead_id: letter.sender_id for letter in letters if letter.step > 1}
    if not followed:
        return {}
    senders = {name: desk.store.senders.get(name) for name in set(followed.values())}
    sent = desk.store.campaigns.message_ids(campaign.id, list(followed))
    threads: dict[str, Thread | None] = {}
    for lead_id, sender_id in followed.items():
        identity = senders[sender_id]
        if identity is not None:
            named = [desk.message_id_of(identity, job, told) for job, told in sent.get(lead_id, ())]
            threads[lead_id] = thread_of(named)
    return threads


def _length(window: Window) -> timedelta:
    """How long a day's opening is on the clock."""
    opens, closes = (timedelta(hours=at.hour, minutes=at.minute) for at in (window.opens, window.closes))
    return closes - opens
