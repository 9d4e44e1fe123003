"""Import leads: bad lines are told, and cost nobody else's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from sendonce.domain.campaigns.leads import LeadCounts, NewLead
from sendonce.domain.people.subscribers import BadRow
from sendonce.flows.campaigns.tell_receivers import tell_receivers
from sendonce.flows.people.add_client import require_direction, require_tenant
from sendonce.ports.campaigns import CampaignStore, Receivers

_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class ImportedLeads:
    counts: LeadCounts
    bad: list[BadRow]


def import_leads(
    store: CampaignStore,
    tenant: str,
    direction: str,
    rows: Iterable[NewLead | BadRow],
    source: str,
    receivers: Receivers | None = None,
) -> ImportedLeads:
    tenant_id = require_tenant(store, tenant)
    require_direction(store, tenant_id, direction)
    bad: list[BadRow] = []
    added = updated = unchanged = 0
    leads = _good(rows, bad)
    while chunk := list(islice(leads, _CHUNK)):
        once = {lead.address.key: lead for lead in chunk}
        told = tell_receivers([*once.values()], receivers)
        counts = store.leads.put(tenant_id, direction, told, source)
        added += counts.added
        updated += counts.updated
        unchanged += counts.unchanged
    return ImportedLeads(LeadCounts(added, updated, unchanged), bad)


def _good(rows: Iterable[NewLead | BadRow], bad: list[BadRow]) -> Iterator[NewLead]:
    for row in rows:
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            yield row
