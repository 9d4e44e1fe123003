"""A person's word on two companies that may be one."""

from __future__ import annotations

from datetime import datetime

from sendonce.domain.engine.tenants import TenantId
from sendonce.errors import Overtaken
from sendonce.ports.prospecting import Duplicates


def review_pair(
    duplicates: Duplicates, tenant_id: TenantId, pair_id: str, *, one: bool, actor: str, now: datetime
) -> None:
    """Raises Overtaken if somebody else has decided it, or if it is not nominated any more."""
    if not duplicates.decide(tenant_id, pair_id, one=one, actor=actor, now=now):
        raise Overtaken(
            f"The pair {pair_id} does not wait for review any more: "
            "'sendonce companies review --json' lists those that do."
        )
