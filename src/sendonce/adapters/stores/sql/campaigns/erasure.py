"""A person's traces in campaigns: the lead, the letters planned for it, and what is noted of colleagues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import campaign_leads, campaign_letters, leads
from sendonce.adapters.stores.sql.mentions import contains
from sendonce.domain.people.privacy import ERASED, Scrubber, Trace, erased_name

L, CL, W = leads.c, campaign_leads.c, campaign_letters.c
SPELLED = ((L.address_key, L.email), (W.address_key, W.address_key))
_ERASED = "erased"


def lead_traces(tx: Connection, spellings: Sequence[str]) -> Iterator[Trace]:
    names = ("direction_id", "email", "name", "company", "timezone", "fields", "source", "stopped")
    for row in tx.execute(sa.select(leads).where(L.address_key.in_(spellings)).order_by(L.id)):
        yield Trace("lead", row.tenant_id, row.created_at, {name: getattr(row, name) for name in names})


def erase_lead(
    tx: Connection, spellings: Sequence[str], scrubber: Scrubber, pepper: bytes, now: datetime
) -> int:
    """How many rows named the person. The lead keeps its place under its own id, and is never written to."""
    erased = 0
    for lead_id in tx.execute(sa.select(L.id).where(L.address_key.in_(spellings))).scalars().all():
        nobody = f"{ERASED}{lead_id}"
        gone = dict.fromkeys(("email", "address_key", "company_key"), nobody) | {"stopped": _ERASED}
        empty: dict[str, Any] = {
            "name": None,
            "company": None,
            "timezone": None,
            "fields": {},
            "updated_at": now,
        }
        erased += tx.execute(leads.update().where(L.id == lead_id).values(**gone, **empty)).rowcount
        _stop(tx, lead_id)
    for key in tx.execute(sa.select(W.address_key).where(W.address_key.in_(spellings)).distinct()).scalars():
        # The name of its job's recipient, too: a letter and its job are found by it.
        named = campaign_letters.update().where(W.address_key == key)
        erased += tx.execute(named.values(address_key=erased_name(key, pepper))).rowcount
    return erased + _erase_reasons(tx, scrubber)


def _stop(tx: Connection, lead_id: str) -> None:
    still_open = campaign_leads.update().where(
        CL.lead_id == lead_id, sa.text("campaign_leads.state = 'open'")
    )
    tx.execute(still_open.values(state="stopped", reason=_ERASED, due_at=None))
    unsent = campaign_letters.update().where(W.lead_id == lead_id, W.state == "chosen")
    tx.execute(unsent.values(state="over"))


def _erase_reasons(tx: Connection, scrubber: Scrubber) -> int:
    """Colleagues were stopped because the person answered, and the reason says who did."""
    erased = 0
    for row in tx.execute(sa.select(campaign_leads).where(contains(CL.reason, scrubber))).all():
        reason = scrubber.text(row.reason)
        if reason != row.reason:
            here = campaign_leads.update().where(CL.campaign_id == row.campaign_id, CL.lead_id == row.lead_id)
            erased += tx.execute(here.values(reason=reason)).rowcount
    return erased
