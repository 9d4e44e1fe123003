"""What a company's standing does to letters that are planned, in the transaction that changes it."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import companies, contacts, job_states, written_letters
from sendonce.adapters.stores.sql.database import Database
from sendonce.adapters.stores.sql.dispatches import skip_jobs
from sendonce.adapters.stores.sql.peppers import hold_pepper, pepper_in_force
from sendonce.adapters.stores.sql.rows import in_state
from sendonce.adapters.stores.sql.suppressions import suppress
from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.suppression_keys import suppression_key
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.errors import BadInput

C, K, W, J = companies.c, contacts.c, written_letters.c, job_states.c


def suppress_contacts(
    database: Database, tx: Connection, tenant_id: TenantId, company_id: str, reason: str, now: datetime
) -> None:
    """Deny every address of a company, and of those that are the same one: each claim asks for that."""
    hold_pepper(database, tx)
    pepper = pepper_in_force(database, tx)
    head = sa.select(sa.func.coalesce(C.primary_id, C.id)).where(C.id == company_id).scalar_subquery()
    same = sa.select(C.id).where(C.tenant_id == tenant_id, (C.id == head) | (C.primary_id == head))
    values = sa.select(K.value).where(K.tenant_id == tenant_id, K.kind == "email", K.company_id.in_(same))
    keyed = {suppression_key(it.key, pepper): it for it in map(_address, tx.execute(values).scalars()) if it}
    for key in sorted(keyed):  # in their order, so that two at once wait in line
        note = f"its company: {reason}"
        suppress(tx, key, tenant_id, keyed[key].text, SuppressionReason.UNSUBSCRIBED, note, now)


def take_back_letters(
    database: Database, tx: Connection, company_id: str, reason: str, now: datetime
) -> None:
    """Skip the jobs of a company's planned letters, but for those that are under way."""
    query = sa.select(J.dispatch_id, J.id).join_from(written_letters, job_states, J.id == W.job_id)
    rows = tx.execute(query.where(W.company_id == company_id, in_state(JobState.SCHEDULED))).all()
    for dispatch_id in sorted({row.dispatch_id for row in rows}):
        own = [row.id for row in rows if row.dispatch_id == dispatch_id]
        skip_jobs(database, tx, dispatch_id, J.id.in_(own), reason, now)


def _address(text: str) -> Address | None:
    try:
        return parse_address(text)
    except BadInput:
        return None  # an erased one
