"""See what became of a campaign's letters, and with whom it is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta

from sendonce.domain.campaigns.campaigns import Advance, Campaign, LetterEnd, Stop, end_of
from sendonce.flows.campaigns.desk import CampaignDesk

_AT_ONCE = 2000


def take_stock(desk: CampaignDesk, campaign: Campaign) -> None:
    store = desk.store.campaigns
    ends = store.ends(campaign.id, _AT_ONCE)
    late = store.troubled(campaign.id, campaign.brakes.bounce_window)
    over = [Stop(end.lead_id, reason) for end in [*ends, *late] if (reason := end_of(end))]
    over += store.answered(campaign.id)
    if over:
        store.stop_leads(campaign.id, over)
        _take_back(desk, campaign, over)
    _close(desk, campaign, ends)


def take_last_stock(desk: CampaignDesk, campaign: Campaign) -> None:
    """Of a campaign that is over: what was under way at its end counts for limits until it is settled."""
    store = desk.store.campaigns
    store.give_up_chosen(campaign.id)
    _close(desk, campaign, store.ends(campaign.id, _AT_ONCE))


def _close(desk: CampaignDesk, campaign: Campaign, ends: Sequence[LetterEnd]) -> None:
    if ends:
        desk.store.campaigns.advance(campaign.id, [_advance(desk, campaign, end) for end in ends])


def _take_back(desk: CampaignDesk, campaign: Campaign, stops: Sequence[Stop]) -> None:
    """Whoever is not to be written to any more gets no letter that waits already, either."""
    reasons = {stop.lead_id: stop.reason for stop in stops}
    for waiting in desk.store.campaigns.waiting(campaign.id, list(reasons)):
        desk.store.dispatches.take_back(waiting.dispatch_id, [waiting.job_id], reasons[waiting.lead_id])


def _advance(desk: CampaignDesk, campaign: Campaign, end: LetterEnd) -> Advance:
    left_at = desk.clock.at(end.settled_at or desk.store.ledger.now())
    return Advance(end.lead_id, end.step, left_at, _next_due(desk, campaign, end))


def _next_due(desk: CampaignDesk, campaign: Campaign, end: LetterEnd) -> datetime | None:
    """After its delay, and never on its recipient's day of the letter before it; None after the last step."""
    follow_up = campaign.step(end.step + 1)
    if follow_up is None or end.settled_at is None:
        return None
    sent_at = desk.clock.at(end.settled_at)
    zone = campaign.window.zone(end.timezone, desk.zone)
    tomorrow = sent_at.astimezone(zone).date() + timedelta(days=1)
    return max(sent_at + follow_up.after, datetime.combine(tomorrow, time(), zone))
