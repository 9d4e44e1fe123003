"""Take a company apart from those that it was merged with. It is visited again, as one of its own."""

from __future__ import annotations

from datetime import datetime

from sendonce.domain.prospecting.companies import Company
from sendonce.errors import RefusedByRule
from sendonce.ports.prospecting import Duplicates


def undo_merges(duplicates: Duplicates, company: Company, actor: str, now: datetime) -> int:
    """From how many pairs. A person's word stands: the same two are not merged again by themselves."""
    undone = duplicates.undo(company.tenant_id, company.id, actor, now)
    if not undone:
        raise RefusedByRule(f"{company.domain} is merged with no other company, so there is nothing to undo.")
    return undone
