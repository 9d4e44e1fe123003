"""Add a client, and say what it writes to strangers about."""

from __future__ import annotations

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import Direction, NewDirection, tenant_named
from sendonce.errors import NotFound
from sendonce.ports.people import TenantStore


def add_tenant(store: TenantStore, tenant_id: str, name: str, actor: str) -> bool:
    """False for one that is there already."""
    named = tenant_named(tenant_id)
    return store.tenants.add(named, name or tenant_id, actor)


def put_direction(store: TenantStore, tenant_id: TenantId, new: NewDirection, actor: str) -> Direction:
    new.check()
    require_tenant(store, tenant_id)
    return store.directions.put(tenant_id, new, actor)


def require_tenant(store: TenantStore, tenant_id: str) -> TenantId:
    named = tenant_named(tenant_id)
    if store.tenants.get(named) is None:
        raise NotFound(f"There is no tenant {tenant_id}: add it with 'sendonce tenant add {tenant_id}'.")
    return named


def require_direction(store: TenantStore, tenant_id: TenantId, direction_id: str) -> Direction:
    direction = store.directions.get(tenant_id, direction_id)
    if direction is None:
        raise NotFound(
            f"{tenant_id} has no direction {direction_id!r}: add it with 'sendonce direction add --tenant "
            f"{tenant_id} {direction_id} --jurisdiction … --basis …'."
        )
    return direction
