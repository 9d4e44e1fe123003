"""Have every company compared with the others again: after a change of the rules, or of many rows by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.tasks import dedupe_task
from sendonce.ports.prospecting import ProspectingStore

_PAGE = 1_000


def look_again(store: ProspectingStore, tenant_id: TenantId, clock: Callable[[], datetime]) -> int:
    """How many companies wait for a look because of it. Page by page: memory does not grow with them."""
    added, after = 0, ""
    while page := store.companies.all(tenant_id, after=after, limit=_PAGE):
        added += store.tasks.add([dedupe_task(tenant_id, company.id) for company in page], clock())
        after = page[-1].id
    return added
