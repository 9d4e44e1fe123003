"""See what became of a campaign's letters, and with whom it is over."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from sendonce.domain.campaigns.campaigns import Campaign, LetterEnd, Stop, end_of
from sendonce.flows.campaigns.desk import CampaignDesk

_AT_ONCE = 2000


def take_stock(desk: CampaignDesk, campaign: Campaign) -> None:
    store = desk.store.campaigns
    ends = store.ends(campaign.id, _AT_ONCE)
    over = [Stop(end.lead_id, reason) for end in ends if (reason := end_of(end))]
    store.advance(campaign.id, [(end, _next_due(desk, campaign, end)) for end in ends if not end_of(end)])
    late = store.troubled(campaign.id, campaign.brakes.bounce_window)
    over += [Stop(end.lead_id, reason) for end in late if (reason := end_of(end))]
    over += store.answered(campaign.id)
    if over:
        store.stop_leads(campaign.id, over)


def _next_due(desk: CampaignDesk, campaign: Campaign, end: LetterEnd) -> datetime | None:
    """After its delay, and never on the day of the letter before it; None after the last step."""
    follow_up = campaign.step(end.step + 1)
    if follow_up is None or end.settled_at is None:
        return None
    sent_at = desk.clock.at(end.settled_at)
    zone = ZoneInfo(campaign.window.timezone) if campaign.window.timezone else desk.zone
    tomorrow = sent_at.astimezone(zone).date() + timedelta(days=1)
    return max(sent_at + follow_up.after, datetime.combine(tomorrow, time(), zone))
