"""Add searches: each is checked, and its region found, before the first is written."""

from __future__ import annotations

from collections.abc import Sequence

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.prospecting.searches import AddedSearch, search_wish
from sendonce.errors import BadInput
from sendonce.ports.prospecting import ProspectingStore, Regions


def add_searches(
    store: ProspectingStore,
    regions: Regions,
    tenant_id: TenantId,
    texts: Sequence[str],
    *,
    region: str,
    pages: int,
    direction_id: str | None = None,
) -> Sequence[AddedSearch]:
    if not texts:
        raise BadInput(
            "There is nothing to search for: give the words, or a file with a search in each line."
        )
    place = regions.find(region)
    wishes = [search_wish(text, place, pages, direction_id) for text in texts]
    return store.searches.add(tenant_id, wishes, store.ledger.now())
