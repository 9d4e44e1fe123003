"""Keep letters of campaigns within their recipients' windows, however late they come to the wire.

A slot is planned inside the window. But a worker may have been away, a receiver may have put the letter off,
or a doubt may have taken hours. So the window is asked again when the letter is about to leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sendonce.domain.campaigns.campaigns import KIND, TIMEZONE, campaign_of
from sendonce.domain.campaigns.clock import CampaignClock
from sendonce.domain.campaigns.windows import Window
from sendonce.domain.engine.jobs import ClaimedJob
from sendonce.domain.engine.tenants import DispatchId
from sendonce.ports.campaigns import CampaignStore
from sendonce.ports.engine import Hours


@dataclass(frozen=True, slots=True)
class CampaignTimetable:
    """``zone`` is that of leads whose own is unknown."""

    store: CampaignStore
    clock: CampaignClock
    zone: ZoneInfo

    def of(self, dispatch_id: DispatchId) -> Hours | None:
        dispatch = self.store.dispatches.get(dispatch_id)
        if dispatch is None or dispatch.kind != KIND:
            return None
        campaign = self.store.campaigns.get(dispatch.tenant_id, campaign_of(dispatch.owner_id))
        return CampaignHours(campaign.window, self.clock, self.zone) if campaign else None


@dataclass(frozen=True, slots=True)
class CampaignHours:
    window: Window
    clock: CampaignClock
    zone: ZoneInfo

    def opens_in(self, job: ClaimedJob, now: datetime) -> timedelta:
        shown = self.clock.at(now)
        zone = self.window.zone(job.fields.get(TIMEZONE), self.zone)
        opening = next(self.window.openings(shown, zone), None)
        if opening is None:
            return timedelta.max
        return self.clock.real(opening.start) - now if opening.start > shown else timedelta()
