"""The letters of a campaign as a lead will read them."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from sendonce.domain.campaigns.campaigns import Campaign
from sendonce.domain.campaigns.leads import Lead
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.templates import Template
from sendonce.errors import NotFound, Unsendable
from sendonce.flows.campaigns.desk import CampaignDesk


class ShownLetter(NamedTuple):
    step: int
    after: str
    subject: str
    text: str


def preview_campaign(desk: CampaignDesk, campaign: Campaign, address: str | None) -> list[ShownLetter]:
    """For a lead of its direction, the first one if none is named."""
    lead = _lead(desk, campaign, address)
    shown = []
    for step in campaign.steps:
        letter = desk.store.letters.get(step.letter_id)
        if letter is None:
            raise Unsendable(f"The letter of step {step.step} is gone: create the campaign anew.")
        after = f"{_in_words(step.after)} after the letter before it" if step.step > 1 else "first"
        subject, text = (_filled(source, lead) for source in (letter.subject, letter.text))
        shown.append(ShownLetter(step.step, after, subject, text))
    return shown


def _in_words(delay: timedelta) -> str:
    days = delay / timedelta(days=1)
    return "1 day" if days == 1 else f"{days:g} days"


def _filled(source: str, lead: Lead) -> str:
    parts = Template.parse(source).parts
    return "".join(part if isinstance(part, str) else part.resolve(lead.fields) or "…" for part in parts)


def _lead(desk: CampaignDesk, campaign: Campaign, address: str | None) -> Lead:
    if address is None:
        some = desk.store.leads.all(campaign.tenant_id, campaign.direction_id)
        first = next((lead for lead in some if lead.stopped is None), None)
        if first is None:
            raise NotFound(
                f"The direction {campaign.direction_id} has no leads yet: 'sendonce leads import'."
            )
        return first
    found = desk.store.leads.find(campaign.tenant_id, campaign.direction_id, parse_address(address))
    if found is None:
        raise NotFound(f"{address} is no lead of {campaign.direction_id}: 'sendonce leads list' shows them.")
    return found
