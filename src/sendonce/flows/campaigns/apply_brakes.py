"""Brake: pause a campaign that bounces, block a sender that is complained of, slow down who is put off.

Only a person lets go on what was paused or blocked. From then on later letters alone count: by the former
ones it would be stopped again at once, whatever was mended. A list that is still bad shows it after as few
letters as at first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sendonce.domain.campaigns.brakes import (
    Brake,
    bounce_brake,
    complaint_brake,
    deferral_brake,
    next_pace,
)
from sendonce.domain.campaigns.campaigns import Campaign, CampaignStatus
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.flows.campaigns.desk import BRAKES, CampaignDesk
from sendonce.flows.campaigns.steer_campaign import pause_campaign

log = logging.getLogger(__name__)


def apply_brakes(desk: CampaignDesk, campaign: Campaign) -> bool:
    """False where the campaign does not go on."""
    for limits in desk.store.pools.of_direction(campaign.tenant_id, campaign.direction_id):
        _brake_sender(desk, campaign, limits)
    bounces = bounces_of(desk, campaign)
    if not bounces.tripped or campaign.status != CampaignStatus.RUNNING:
        return True
    pause_campaign(desk, campaign, bounces.reason(), BRAKES, judged_from=desk.now())
    _tell(desk, f"The campaign {campaign.name!r} of {campaign.tenant_id} is paused", bounces)
    return False


def bounces_of(desk: CampaignDesk, campaign: Campaign) -> Brake:
    """While it is paused, with the letters that it was paused for."""
    since = None if campaign.status == CampaignStatus.PAUSED else campaign.judged_from
    record = desk.store.campaigns.record(campaign.id, campaign.brakes.bounce_window, since)
    return bounce_brake(record.bounces, record.letters, campaign.brakes)


def complaints_of(desk: CampaignDesk, campaign: Campaign, sender: SenderLimits) -> Brake:
    """While it is blocked, with the letters that it was blocked for."""
    newest, since = (
        campaign.brakes.complaint_window,
        None if _is_blocked(desk, sender) else sender.judged_from,
    )
    record = desk.store.campaigns.record_of_sender(campaign.tenant_id, sender.sender_id, newest, since)
    return complaint_brake(record.complaints, record.letters, campaign.brakes)


def deferrals_of(desk: CampaignDesk, campaign: Campaign, sender_id: str) -> Brake:
    newest = campaign.brakes.deferral_window
    record = desk.store.campaigns.record_of_sender(campaign.tenant_id, sender_id, newest)
    return deferral_brake(record.deferrals, record.letters, campaign.brakes)


def worst(brakes: Sequence[Brake]) -> Brake | None:
    return max(brakes, key=lambda brake: (brake.tripped, brake.value), default=None)


def _brake_sender(desk: CampaignDesk, campaign: Campaign, limits: SenderLimits) -> None:
    complaints = complaints_of(desk, campaign, limits)
    if complaints.tripped:
        _block(desk, limits, complaints)
        # Nobody else goes on with what it began: a follow-up is an answer to one's own letter.
        desk.store.campaigns.stop_leads_of(campaign.id, limits.sender_id, "its sender is blocked")
    now = desk.now()
    slower = complaints.count > 0 or deferrals_of(desk, campaign, limits.sender_id).tripped
    since = now - limits.paced_at if limits.paced_at else now - now
    pace = next_pace(limits.pace, since, slower=slower)
    if pace != limits.pace:
        desk.store.pools.set_pace(limits.tenant_id, limits.sender_id, pace, now)


def _block(desk: CampaignDesk, limits: SenderLimits, complaints: Brake) -> None:
    """Until a person releases it. One that is held by hand already stays as it is."""
    identity = desk.store.senders.get(limits.sender_id)
    if identity is None or _is_blocked(desk, limits):
        return
    key = desk.keys_of(identity).home
    desk.store.sender_holds.hold_by_hand(key, complaints.reason(), None, BRAKES)
    desk.store.pools.judge_from(limits.tenant_id, limits.sender_id, desk.now())
    _tell(desk, f"The sender {identity.address} is blocked", complaints)


def _is_blocked(desk: CampaignDesk, limits: SenderLimits) -> bool:
    identity = desk.store.senders.get(limits.sender_id)
    held = desk.hold_of(identity) if identity else None
    return held is not None and held.until_released


def _tell(desk: CampaignDesk, what: str, brake: Brake) -> None:
    log.warning(
        "a brake was applied",
        extra={"fields": {"what": what, "rule": brake.rule, "count": brake.count, "letters": brake.letters}},
    )
    desk.alert(what, f"{what}: {brake.reason()}")
