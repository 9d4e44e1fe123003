"""Leave a company alone, by the word of somebody who spoke with it."""

from __future__ import annotations

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.companies import Company
from sendonce.flows.prospecting.find_company import find_company
from sendonce.ports.prospecting import ProspectingStore, Sites


def opt_out_company(
    store: ProspectingStore, sites: Sites, tenant_id: TenantId, name: str, reason: str
) -> Company:
    """Raises NotFound, and BadInput where several ids begin so."""
    company = find_company(store.companies, sites, tenant_id, name)
    store.companies.opt_out(tenant_id, company.id, reason, store.ledger.now())
    return company
