"""A person's traces in prospecting: contacts, and letters that were written to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sendonce.adapters.stores.schema import contacts, written_letters
from sendonce.domain.people.privacy import ERASED, Scrubber
from sendonce.domain.people.suppression_keys import suppression_fold

K, W = contacts.c, written_letters.c
_OF_GMAIL = ("gmail.com", "googlemail.com")


def found_spellings(tx: Connection, address_key: str) -> list[str]:
    """How sites and letters spell the addresses of this person's mailbox."""
    domain, folded = address_key.rpartition("@")[2], suppression_fold(address_key)
    domains = _OF_GMAIL if domain in _OF_GMAIL else (domain,)
    found: list[str] = []
    for key, written in ((K.value_key, K.value), (W.recipient_key, W.recipient)):
        there = sa.or_(*(key.endswith(f"@{it}", autoescape=True) for it in domains))
        for row in tx.execute(sa.select(key, written).where(there)):
            if suppression_fold(row[0]) == folded:
                found += row
    return found


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
