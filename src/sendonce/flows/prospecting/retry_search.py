"""Submit again what has failed, expired or is of unknown fate, by a person's word."""

from __future__ import annotations

from sendonce.domain.engine.ids import whole_id
from sendonce.domain.engine.tenants import TenantId
from sendonce.errors import RefusedByRule
from sendonce.ports.prospecting import ProspectingStore


def retry_search(store: ProspectingStore, tenant_id: TenantId, name: str, actor: str) -> tuple[str, int]:
    """The search that begins so, and how many of its requests are queued again."""

    def look(prefix: str, limit: int) -> list[str]:
        return list(store.searches.with_prefix(tenant_id, prefix, limit))

    query_id = whole_id("search", name, look)
    count = store.searches.retry(tenant_id, query_id, store.ledger.now(), actor)
    if not count:
        raise RefusedByRule(f"Nothing of the search {query_id} has failed, so there is nothing to retry.")
    return query_id, count
