"""A person's traces in prospecting: contacts, and letters that were written to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import contacts, written_letters
from sendonce.domain.people.privacy import ERASED, Scrubber, Trace

K, W = contacts.c, written_letters.c
SPELLED = ((K.value_key, K.value), (W.recipient_key, W.recipient))


def prospect_traces(tx: Connection, spellings: Sequence[str]) -> Iterator[Trace]:
    found = ("value", "role", "source_url", "takes_mail", "trouble", "attributes")
    for row in tx.execute(sa.select(contacts).where(K.value_key.in_(spellings)).order_by(K.id)):
        yield Trace("contact", row.tenant_id, row.created_at, {name: getattr(row, name) for name in found})
    written = ("direction_id", "recipient", "status", "subject", "text", "note", "source_url")
    for row in tx.execute(sa.select(written_letters).where(W.recipient_key.in_(spellings)).order_by(W.id)):
        what = {name: getattr(row, name) for name in written}
        yield Trace("written letter", row.tenant_id, row.created_at, what)


def erase_prospect(tx: Connection, spellings: Sequence[str], scrubber: Scrubber, now: datetime) -> int:
    """How many rows named the person. They keep their place under their own ids: sums and letters hold."""
    erased = 0
    for row in tx.execute(sa.select(contacts).where(K.value_key.in_(spellings))).all():
        nobody = f"{ERASED}{row.id}"
        gone = {"value": nobody, "value_key": nobody, "attributes": {}, "is_primary": False}
        change = contacts.update().where(K.id == row.id)
        erased += tx.execute(change.values(**gone, trouble="opted_out")).rowcount
    for row in tx.execute(sa.select(written_letters).where(W.recipient_key.in_(spellings))).all():
        nobody = f"{ERASED}{row.id}"
        gone = {"recipient": nobody, "recipient_key": nobody, "updated_at": now}
        gone |= {name: scrubber.document(getattr(row, name)) for name in ("subject", "text", "note", "brief")}
        if row.status != "planned":
            gone |= {"status": "skipped", "note": "erased"}
        erased += tx.execute(written_letters.update().where(W.id == row.id).values(gone)).rowcount
    return erased
