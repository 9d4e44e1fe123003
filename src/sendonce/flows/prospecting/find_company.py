"""Find a company as a person names it: by the beginning of its id, by its domain, by a URL of its site."""

from __future__ import annotations

from sendonce.domain.engine.ids import whole_id
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.companies import Company
from sendonce.errors import NotFound
from sendonce.ports.prospecting import Companies, Sites


def find_company(companies: Companies, sites: Sites, tenant_id: TenantId, name: str) -> Company:
    """Raises NotFound, and BadInput where several ids begin so."""
    domain = sites.read(name).domain if "." in name else None
    found = companies.at(tenant_id, domain) if domain else None
    if found is None and "." not in name:
        company_id = whole_id(
            "company", name, lambda prefix, limit: companies.with_prefix(tenant_id, prefix, limit)
        )
        found = companies.get(tenant_id, company_id)
    if found is None:
        raise NotFound(f"There is no company {name!r}: 'sendonce companies list' shows those there are.")
    return found
