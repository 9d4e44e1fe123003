"""The audit log: who did what, each entry bound to the one before it by a hash.

    digest = sha256(salt, who, what, to what, details)
    hash   = sha256(hash of the former, number, id, time, digest)

Changing, moving or removing an entry breaks the hashes after it. Erasing a person takes names out of entries.
Their salt goes, too: the digest tells nobody what stood there, and the chain still holds. Such an entry is in
order only if a later erasure names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sendonce.domain.people.privacy import ERASED, is_erased

ERASE = "erase"
REDACTED = "redacted"
"""Under this name an erasure lists the entries that it took names out of."""
FIRST = "0" * 64
"""Stands for the hash before the first entry."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """``number``, ``digest`` and ``hash`` are None for entries older than the chain; ``salt`` also for those
    that a name was taken out of."""

    id: str
    at: datetime
    actor: str
    action: str
    subject: str
    details: Mapping[str, Any]
    number: int | None = None
    salt: str | None = None
    digest: str | None = None
    hash: str | None = None


@dataclass(frozen=True, slots=True)
class ChainReport:
    """``head`` is the newest hash: noted elsewhere, it proves later that nothing before it was changed."""

    entries: int
    before_the_chain: int
    redacted: int
    head: str
    faults: tuple[str, ...]


def digest_of(salt: str, actor: str, action: str, subject: str, details: Mapping[str, Any]) -> str:
    """A hash that stands for an erased person is left out: rotating the keys changes it."""
    whom = ERASED if is_erased(subject) else subject
    told = json.dumps([salt, actor, action, whom, details], sort_keys=True, ensure_ascii=False, default=str)
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def hash_of(former: str, number: int, entry_id: str, at: datetime, digest: str) -> str:
    moment = at.astimezone(UTC).isoformat(timespec="microseconds")
    return sha256("\n".join((former, str(number), entry_id, moment, digest)).encode()).hexdigest()


def check_chain(entries: Iterable[AuditEntry], noted_head: str | None = None) -> ChainReport:
    """Entries in the order of their numbers; those without one are older than the chain."""
    old = number = 0
    former, faults = FIRST, []
    bare: dict[str, int] = {}
    excused: set[str] = set()
    heads = {FIRST}
    for entry in entries:
        if entry.number is None:
            old += 1
            continue
        if entry.number != number + 1:
            faults.append(f"Entries {number + 1} to {entry.number - 1} are missing.")
        faults += _faults_of(entry, former)
        number, former = entry.number, entry.hash or FIRST
        if noted_head is not None:
            heads.add(former)
        if entry.salt is None:
            bare[entry.id] = number
        elif entry.action == ERASE:
            excused.update(entry.details.get(REDACTED, ()))
    faults += [
        f"Entry {place} has lost its content, and no erasure says so."
        for entry_id, place in bare.items()
        if entry_id not in excused
    ]
    if noted_head is not None and noted_head not in heads:
        faults.append(f"The hash {noted_head} is not in the chain: it was written anew, or cut short.")
    return ChainReport(number, old, len(bare), former, tuple(faults))


def _faults_of(entry: AuditEntry, former: str) -> Iterator[str]:
    digest = entry.digest or ""
    told = entry.actor, entry.action, entry.subject, entry.details
    if entry.salt is not None and digest_of(entry.salt, *told) != digest:
        yield f"Entry {entry.number} was changed: it is not what its digest says."
    if hash_of(former, entry.number or 0, entry.id, entry.at, digest) != entry.hash:
        yield f"Entry {entry.number} does not follow from the one before it."
