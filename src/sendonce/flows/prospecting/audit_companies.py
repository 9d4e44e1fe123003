"""Draw the sample of the contact list that would show companies that stand on it twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.audits import (
    TARGET,
    Alike,
    Audit,
    Examined,
    Listed,
    count_repeated,
    draw,
    repeats,
    upper_bound,
)
from sendonce.ports.prospecting import ProspectingStore

_PAGE = 500


def audit_companies(store: ProspectingStore, tenant_id: TenantId, size: int, seed: int) -> Audit:
    listed = store.duplicates.listed(tenant_id)
    shared = repeats(listed)
    sample = draw(listed, size, seed)
    rows: list[Examined] = []
    for start in range(0, len(sample), _PAGE):
        page = sample[start : start + _PAGE]
        alike = store.duplicates.alike(tenant_id, [each.company_id for each in page])
        rows += [_examined(store, tenant_id, each, shared, alike) for each in page]
    suspect = sum(bool(row.same_as) for row in rows)
    return Audit(
        listed=len(listed),
        repeated=count_repeated(shared),
        sampled=len(rows),
        suspect=suspect,
        seed=seed,
        at_most=upper_bound(suspect, len(rows)) if rows else 1.0,
        target=TARGET,
        rows=rows,
    )


def _examined(
    store: ProspectingStore,
    tenant_id: TenantId,
    each: Listed,
    shared: Mapping[str, Sequence[Listed]],
    alike: Mapping[str, Sequence[Alike]],
) -> Examined:
    company = store.companies.get(tenant_id, each.company_id)
    reasons = {
        twin.domain: f"same address or its domain: {each.mail_domain}"
        for twin in shared.get(each.mail_domain, ())
        if twin.company_id != each.company_id
    }
    for other in alike.get(each.company_id, ()):
        reasons[other.domain] = f"same {other.evidence}: {other.value}"
    return Examined(
        each.company_id,
        each.domain,
        company.name if company else "",
        company.city if company else None,
        company.inn if company else None,
        each.email,
        ", ".join(reasons),
        "; ".join(reasons.values()),
    )
