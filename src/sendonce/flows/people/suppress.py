"""Suppress one address, and allow it again, on a person's word."""

from __future__ import annotations

from sendonce.domain.engine.addresses import Address
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import EVERYBODY, Suppression, SuppressionReason
from sendonce.errors import NotFound
from sendonce.ports.people import Suppressions


def suppress(suppressions: Suppressions, scope: TenantId, address: Address, note: str | None = None) -> bool:
    """Never write to it again; False where it was suppressed already. ``scope`` is a tenant, or everybody."""
    return suppressions.add(scope, address, SuppressionReason.MANUAL, note)


def allow_again(
    suppressions: Suppressions, tenant_id: TenantId, scope: TenantId, address: Address, actor: str
) -> Suppression | None:
    """Lift the suppression of this scope, in the audit log; what still keeps the tenant from writing there.

    Raises NotFound where the scope has none.
    """
    removed = suppressions.remove(scope, address, actor)
    left = suppressions.covers(tenant_id, address)
    if not removed:
        raise NotFound(f"{address.text} is not suppressed in this scope.{how_to_lift(left)}")
    return left


def how_to_lift(left: Suppression | None) -> str:
    """What else keeps the address from being written to, and how to end that."""
    if left is None:
        return ""
    if left.scope == EVERYBODY:
        return " It is suppressed for every tenant: add --global."
    if left.scope == DEFAULT_TENANT:
        return " It is suppressed for the default tenant: leave out --global."
    return f" It is suppressed for the tenant {left.scope}: say --tenant {left.scope} instead of --global."
