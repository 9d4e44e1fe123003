"""Make leads of the contacts that prospecting found for a direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sendonce.domain.campaigns.leads import FoundContact, LeadCounts, NewLead
from sendonce.domain.campaigns.receivers import Receiver, receiver_of_domain
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.people.directions import Direction
from sendonce.domain.people.legal_gate import Addressee, require_footing, why_not
from sendonce.domain.people.subscribers import BadRow
from sendonce.errors import BadInput
from sendonce.flows.campaigns.import_leads import import_leads
from sendonce.flows.people.add_client import require_direction, require_tenant
from sendonce.ports.campaigns import CampaignStore, Receivers

SOURCE = "contacts"
_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class LeadsFromContacts:
    """``left_out`` counts, by reason, those whom nobody may write to."""

    counts: LeadCounts
    left_out: dict[str, int]


def leads_from_contacts(
    store: CampaignStore, tenant: str, direction: str, receivers: Receivers | None = None
) -> LeadsFromContacts:
    """Raises RefusedByRule for a direction that the law blocks. Asked again it adds what was found since."""
    tenant_id = require_tenant(store, tenant)
    found_in = require_direction(store, tenant_id, direction)
    require_footing(found_in)
    left_out: Counter[str] = Counter()
    leads = _leads(store, found_in, left_out)
    done = import_leads(store, tenant, direction, leads, SOURCE, receivers)
    return LeadsFromContacts(done.counts, dict(left_out))


def _leads(store: CampaignStore, direction: Direction, left_out: Counter[str]) -> Iterator[NewLead | BadRow]:
    after = ""
    while page := store.found_contacts.of_direction(
        direction.tenant_id, direction.id, after=after, limit=_CHUNK
    ):
        after = page[-1].id
        for contact in page:
            lead = _lead(store, direction, contact)
            if isinstance(lead, str):
                left_out[lead] += 1
            else:
                yield lead


def _lead(store: CampaignStore, direction: Direction, contact: FoundContact) -> NewLead | str:
    """The lead, or why there is none."""
    try:
        address = parse_address(contact.email)
    except BadInput:
        return "not an address that can be written to"
    if denied := store.suppressions.covers(direction.tenant_id, address):
        return f"suppressed: {denied.reason}"
    if reason := why_not(direction, Addressee(contact.role, contact.freemail)):
        return reason
    told = {"company": contact.company, "city": contact.city, "site": contact.site}
    fields = {name: value for name, value in told.items() if value} | {"source": contact.source_url}
    receiver = receiver_of_domain(address.key.rpartition("@")[2]) or Receiver.OTHER
    return NewLead(address, None, contact.company or contact.site, None, receiver, fields)
