"""What tells one database from another: parts with colons between them, ``?`` for one that cannot be read.

    SQLite       machine : inode of the file
    PostgreSQL   system identifier of the cluster : timeline of its log : number of the database

A copy of a file, a dump loaded elsewhere, a point-in-time restore and a promoted standby have another one;
a restart, a crash and a vacuum keep it. Only a person can tell whether a database with another fingerprint
has lost commits, so the ledger is halted until one says so.
"""

from __future__ import annotations

from sendonce.domain.engine.claim_counts import HOW_TO_GO_ON
from sendonce.errors import LedgerRolledBack

UNREADABLE = "?"


def refuse_another_database(recorded: str | None, seen: str | None) -> None:
    """Raises LedgerRolledBack where ``seen`` is not the database that the ledger was recorded in."""
    if recorded is None or seen is None or _same(recorded, seen):
        return
    raise LedgerRolledBack(
        "The database is a copy, or was moved from another machine, restored, or promoted from a standby "
        f"({recorded} became {seen}): it may not know of what was sent last. {HOW_TO_GO_ON} "
        "If you know that nothing was lost: 'sendonce db adopt --nothing-was-lost'."
    )


def _same(recorded: str, seen: str) -> bool:
    """A part that a role may not read says nothing."""
    pairs = zip(recorded.split(":"), seen.split(":"), strict=False)
    return recorded.count(":") == seen.count(":") and all(a == b or UNREADABLE in (a, b) for a, b in pairs)
