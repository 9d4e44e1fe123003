"""Add a client, and say what it writes to strangers about."""

from __future__ import annotations

from dataclasses import replace

from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.directions import (
    USUAL_LANGUAGE,
    Direction,
    NewDirection,
    Tenant,
    check_terms,
    tenant_named,
)
from sendonce.domain.people.offers import read_offer, require_language
from sendonce.errors import NotFound
from sendonce.ports.people import TenantStore


def add_tenant(store: TenantStore, tenant_id: str, name: str, actor: str) -> bool:
    """False for one that is there already."""
    named = tenant_named(tenant_id)
    return store.tenants.add(named, name or tenant_id, actor)


def set_terms(
    store: TenantStore, tenant_id: str, weight: int | None, daily: int | None, actor: str
) -> Tenant:
    """What is None stays as it was; a ``daily`` of 0 is no limit."""
    check_terms(weight, daily)
    known = require_tenant(store, tenant_id)
    before = store.tenants.get(known)
    assert before is not None
    after = replace(
        before,
        weight=before.weight if weight is None else weight,
        daily=before.daily if daily is None else daily or None,
    )
    if after != before:
        store.tenants.set_terms(known, after.weight, after.daily, actor)
    return after


def put_direction(store: TenantStore, tenant_id: TenantId, new: NewDirection, actor: str) -> Direction:
    """What is not said of a direction that is there stays as it was: its note is a record of consent."""
    new.check()
    require_tenant(store, tenant_id)
    known = store.directions.get(tenant_id, new.id)
    said = replace(
        new,
        note=new.note or (known.note if known else None),
        offer=new.offer or (known.offer if known else None),
        name=new.name or (known.name if known else ""),
        language=new.language or (known.language if known else _usual_language(new)),
    )
    if said.offer and (new.offer or new.language):
        require_language(read_offer(said.offer), said.language)
    return store.directions.put(tenant_id, said, actor)


def _usual_language(new: NewDirection) -> str:
    return read_offer(new.offer).language if new.offer else USUAL_LANGUAGE


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
