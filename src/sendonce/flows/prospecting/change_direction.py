"""Say what a direction is, and take back at once what may not leave by it any more."""

from __future__ import annotations

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import Direction, NewDirection
from sendonce.flows.people.add_client import put_direction
from sendonce.flows.prospecting.take_back_letters import take_back_letters
from sendonce.ports.prospecting import ProspectingStore


def change_direction(
    store: ProspectingStore, tenant_id: TenantId, new: NewDirection, actor: str
) -> tuple[Direction, int]:
    """The direction as it is now, and how many planned letters were taken back."""
    put = put_direction(store, tenant_id, new, actor)
    return put, take_back_letters(store, put)
