"""Start a campaign: all leads of its direction are in it, and a worker sends."""

from __future__ import annotations

from sendonce.domain.campaigns.campaigns import Campaign
from sendonce.domain.engine.templates import Template
from sendonce.domain.people.legal_gate import require_footing
from sendonce.errors import RefusedByRule, Unsendable
from sendonce.flows.campaigns.desk import CampaignDesk
from sendonce.flows.people.add_client import require_direction

_NAMED = 3


def start_campaign(desk: CampaignDesk, campaign: Campaign, actor: str) -> int:
    """How many leads are in it. Raises RefusedByRule where it could not be carried out."""
    store = desk.store
    if not store.pools.of_direction(campaign.tenant_id, campaign.direction_id):
        raise RefusedByRule(
            f"The direction {campaign.direction_id} of {campaign.tenant_id} has no sender: add one with "
            f"'sendonce sender add --tenant {campaign.tenant_id} --direction {campaign.direction_id} …'."
        )
    require_footing(require_direction(store, campaign.tenant_id, campaign.direction_id))
    _refuse_missing_values(desk, campaign)
    return store.campaigns.start(campaign.id, desk.now(), actor)


def _refuse_missing_values(desk: CampaignDesk, campaign: Campaign) -> None:
    """A variable without value or default would stop its letter half-way through the campaign."""
    wanted: dict[str, int] = {}
    for step in campaign.steps:
        letter = desk.store.letters.get(step.letter_id)
        if letter is None:
            raise Unsendable(f"The letter of step {step.step} is gone: create the campaign anew.")
        for source in (letter.subject, letter.html, letter.text):
            for name in Template.parse(source).missing({}):
                wanted.setdefault(name, step.step)
    if not wanted:
        return
    after, missing = "", []
    while page := desk.store.leads.all(campaign.tenant_id, campaign.direction_id, after=after):
        after = page[-1].id
        for lead in (lead for lead in page if lead.stopped is None):
            missing += [(lead.email, name) for name in wanted if not lead.fields.get(name)]
        if len(missing) > _NAMED:
            break
    if missing:
        email, name = missing[0]
        raise Unsendable(
            f"The letter of step {wanted[name]} says {{{{ {name} }}}}, and {email} has no value for it"
            f'{" (nor have others)" if len(missing) > 1 else ""}. Write {{{{ {name} | default: "…" }}}}, '
            "or add the column to the leads."
        )
