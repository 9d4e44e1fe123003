"""Pause, resume and stop a campaign, and with it the letters of it that are planned already."""

from __future__ import annotations

from datetime import datetime

from sendonce.domain.campaigns.campaigns import Campaign, CampaignStatus
from sendonce.errors import RefusedByRule
from sendonce.flows.campaigns.desk import CampaignDesk


def pause_campaign(
    desk: CampaignDesk,
    campaign: Campaign,
    reason: str | None,
    actor: str,
    judged_from: datetime | None = None,
) -> None:
    """After a resumption its brakes count letters from ``judged_from`` on; None leaves that as it was."""
    _move(desk, campaign, CampaignStatus.PAUSED, reason, actor, judged_from)
    _set_paused(desk, campaign, paused=True)


def resume_campaign(desk: CampaignDesk, campaign: Campaign, actor: str) -> None:
    _move(desk, campaign, CampaignStatus.RUNNING, None, actor)
    _set_paused(desk, campaign, paused=False)


def stop_campaign(desk: CampaignDesk, campaign: Campaign, reason: str | None, actor: str) -> None:
    """Final: what is planned and not under way is skipped."""
    _move(desk, campaign, CampaignStatus.STOPPED, reason, actor)
    for _, _, dispatch_id in desk.store.campaigns.dispatches(campaign.id):
        desk.store.dispatches.cancel(dispatch_id)


def delete_campaign(desk: CampaignDesk, campaign: Campaign, actor: str) -> None:
    """Only before its start: afterwards its letters count for limits, and reports tell of them."""
    if not desk.store.campaigns.delete(campaign.id, actor):
        raise RefusedByRule(
            f"The campaign {campaign.name!r} was started, and its letters are part of the books: it stays. "
            "'sendonce campaign stop' ends it."
        )


def _move(
    desk: CampaignDesk,
    campaign: Campaign,
    to: CampaignStatus,
    reason: str | None,
    actor: str,
    judged_from: datetime | None = None,
) -> None:
    if not desk.store.campaigns.move(campaign.id, to, reason, actor, judged_from):
        already = f"is {campaign.status} already" if to == campaign.status else f"is {campaign.status}"
        raise RefusedByRule(f"The campaign {campaign.name!r} {already}: it cannot become {to}.")


def _set_paused(desk: CampaignDesk, campaign: Campaign, *, paused: bool) -> None:
    for _, _, dispatch_id in desk.store.campaigns.dispatches(campaign.id):
        desk.store.dispatches.set_paused(dispatch_id, paused)
