"""Texts that may name a person though the row is not theirs: found by a search, then scrubbed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from sendonce.adapters.stores.schema import (
    audit_log,
    companies,
    letters,
    mailbox_messages,
    mailouts,
    outbox,
    processing_jobs,
    serp_results,
    written_letters,
)
from sendonce.domain.people.privacy import Scrubber, is_erased
from sendonce.domain.people.suppression_keys import suppression_fold

T = TypeVar("T")
Spelled = tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]
"""A column of address keys, and the one that has the address as it was written."""

_OF_GMAIL = ("gmail.com", "googlemail.com")
_TEXTS: dict[sa.Table, tuple[str, ...]] = {
    outbox: ("body", "error"),
    audit_log: ("subject", "details"),
    mailouts: ("audience",),
    mailbox_messages: ("reason",),
    letters: ("subject", "preheader", "html", "text"),
    written_letters: ("subject", "text", "note", "brief", "checks"),
    serp_results: ("title", "snippet", "metadata"),
    companies: ("facts", "reason"),
    processing_jobs: ("payload", "reason"),
}


def found_spellings(tx: Connection, address_key: str, columns: Iterable[Spelled]) -> list[str]:
    """How these columns spell the addresses of this person's mailbox."""
    domain, folded = address_key.rpartition("@")[2], suppression_fold(address_key)
    domains = _OF_GMAIL if domain in _OF_GMAIL else (domain,)
    found: list[str] = []
    for key, written in columns:
        there = sa.or_(*(key.endswith(f"@{it}", autoescape=True) for it in domains))
        for row in tx.execute(sa.select(key, written).where(there).distinct()):
            if suppression_fold(row[0]) == folded:
                found += row
    return found


def mentions(tx: Connection, scrubber: Scrubber) -> dict[sa.Table, list[str]]:
    """The ids of the rows whose texts have a spelling in them."""
    return {
        table: list(tx.execute(sa.select(table.c.id).where(_any(table, names, scrubber))).scalars())
        for table, names in _TEXTS.items()
    }


def erase_mentions(tx: Connection, found: dict[sa.Table, list[str]], scrubber: Scrubber) -> int:
    erased = 0
    for table, names in _TEXTS.items():
        for row in rows_of(tx, table, found[table]):
            changes = {name: scrubber.document(getattr(row, name)) for name in names}
            if table is mailouts:  # a test: whoever was erased is no tester any more
                changes["audience"] = [tester for tester in changes["audience"] if not is_erased(tester)]
            if table is audit_log:
                changes["salt"] = None  # what stood here can be guessed no more
            if any(changes[name] != getattr(row, name) for name in names):
                erased += tx.execute(table.update().where(table.c.id == row.id).values(changes)).rowcount
    return erased


def redacted_entries(tx: Connection, found: dict[sa.Table, list[str]]) -> list[str]:
    """The entries of the audit log, among those found, that have lost a name."""
    return [row.id for row in rows_of(tx, audit_log, found[audit_log]) if row.salt is None]


def _any(table: sa.Table, names: Sequence[str], scrubber: Scrubber) -> sa.ColumnElement[bool]:
    return sa.or_(*(contains(table.c[name], scrubber) for name in names))


def contains(column: sa.Column[Any], scrubber: Scrubber) -> sa.ColumnElement[bool]:
    text = sa.func.lower(sa.cast(column, sa.Text))
    return sa.or_(sa.false(), *(text.contains(spelling, autoescape=True) for spelling in scrubber.spellings))


def rows_of(tx: Connection, table: sa.Table, ids: Sequence[str]) -> Iterator[Row[Any]]:
    for some in portions(ids):
        yield from tx.execute(sa.select(table).where(table.c.id.in_(some)).order_by(table.c.id)).all()


def portions(items: Iterable[T], size: int = 500) -> Iterator[list[T]]:
    """IN lists of a length that every database takes."""
    every = list(items)
    for start in range(0, len(every), size):
        yield every[start : start + size]
