"""Measure kept contacts against a list of true ones."""

from __future__ import annotations

from collections.abc import Mapping

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.contact_audits import ContactAudit
from sendonce.domain.prospecting.kept_contacts import ContactKind
from sendonce.ports.prospecting import ProspectingStore

_KINDS = {ContactKind.EMAIL: "emails", ContactKind.PHONE: "phones"}


def audit_contacts(
    store: ProspectingStore, tenant_id: TenantId, truth: Mapping[str, Mapping[str, list[str]]]
) -> dict[str, ContactAudit]:
    """By kind. A company that was not found, or not visited, has none of its contacts."""
    audits = {name: ContactAudit() for name in _KINDS.values()}
    for domain, true in truth.items():
        company = store.companies.at(tenant_id, domain)
        kept = store.contacts.of(tenant_id, [company.id])[company.id] if company else []
        for kind, name in _KINDS.items():
            values = [contact.seen.value for contact in kept if contact.seen.kind is kind]
            audits[name].compare(domain, true[name], values)
    return audits
