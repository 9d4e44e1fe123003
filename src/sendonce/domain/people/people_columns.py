"""Many people at once, as columns: an import handles a million of them, and an object each costs more
than all its checks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from itertools import compress
from json.encoder import encode_basestring as _quoted
from typing import NamedTuple

from sendonce.domain.engine.addresses import PLAIN, PLAIN_LENGTH
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.people.peppers import KEY_LENGTH, LINK_LENGTH, first_link, rotated
from sendonce.domain.people.subscribers import BadRow, ImportCounts, NewSubscriber, SubscriberStatus
from sendonce.domain.people.suppression_keys import suppression_fold
from sendonce.domain.people.suppressions import GRAVITY, Suppression, SuppressionReason

# Each line of a text in turn: a plain address, or nothing where it is something else.
_plain_lines = re.compile(rf"^(?:({PLAIN.pattern})$|.*$)", re.MULTILINE).findall


class Denial(NamedTuple):
    """A list says that this person must not be written to."""

    email: str
    reason: SuppressionReason


@dataclass(slots=True)
class PeopleColumns:
    """People of an opt-in list. ``emails`` is what is written to, ``keys`` what is compared.

    ``attributes`` are JSON objects, as ``attributes_text`` writes them. ``denials`` and ``consents`` are by
    key, for few people have one; a denial may be of somebody who is not among ``keys``.
    """

    emails: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    denials: dict[str, Denial] = field(default_factory=dict)
    consents: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, people: Iterable[NewSubscriber]) -> PeopleColumns:
        columns = cls()
        for person in people:
            attributes = attributes_text(person.attributes)
            columns.append(person.address.text, person.address.key, person.name, attributes)
        return columns

    def deny(self, key: str, email: str, reason: SuppressionReason) -> None:
        """What is graver wins where lines or columns disagree."""
        known = self.denials.get(key)
        if known is None or GRAVITY[known.reason] < GRAVITY[reason]:
            self.denials[key] = Denial(email, reason)

    def append(self, email: str, key: str, name: str | None, attributes: str) -> None:
        self.emails.append(email)
        self.keys.append(key)
        self.names.append(name)
        self.attributes.append(attributes)

    def extend(self, others: PeopleColumns) -> None:
        self.emails += others.emails
        self.keys += others.keys
        self.names += others.names
        self.attributes += others.attributes
        for key, denial in others.denials.items():
            self.deny(key, *denial)
        self.consents.update(others.consents)

    def where(self, chosen: Sequence[object]) -> PeopleColumns:
        """The chosen people, with all denials and consents."""
        return PeopleColumns(
            list(compress(self.emails, chosen)),
            list(compress(self.keys, chosen)),
            list(compress(self.names, chosen)),
            list(compress(self.attributes, chosen)),
            self.denials,
            self.consents,
        )


@dataclass(slots=True)
class ReadChunk:
    """A piece of a file: people with the lines where their records begin, and the lines that are no use."""

    lines: list[int] = field(default_factory=list)
    people: PeopleColumns = field(default_factory=PeopleColumns)
    bad: list[BadRow] = field(default_factory=list)

    def extend(self, other: ReadChunk) -> None:
        self.lines += other.lines
        self.people.extend(other.people)
        self.bad += other.bad


_in_order = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


def attributes_text(values: Mapping[str, str]) -> str:
    """Equal attributes are equal text, for their keys are sorted."""
    return _in_order(values) if values else "{}"


def attributes_texts(columns: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """``attributes_text`` of each row of columns, one column at the least; an empty value is left out."""
    pieces = []
    for key, column in sorted(columns):
        title = f", {_quoted(key)}: "
        pieces.append([title + _quoted(value) if value else "" for value in column])
    return ["{" + text[2:] + "}" for text in map("".join, zip(*pieces, strict=True))]


def plain_addresses(raws: Sequence[str]) -> tuple[list[str], list[str]]:
    """Texts and keys of the addresses that are spelled in the plain way, as ``parse_address`` gives them.

    Where a raw spelling is anything else both are empty, and ``parse_address`` has to judge it.
    """
    together = "\n".join(raws)
    plain = _plain_lines(together)
    if len(plain) != len(raws):
        return [""] * len(raws), [""] * len(raws)
    if "=?" in together or max(map(len, plain), default=0) > PLAIN_LENGTH:
        plain = [raw if len(raw) <= PLAIN_LENGTH and "=?" not in raw else "" for raw in plain]
    keys = "\n".join(plain).lower().split("\n") if plain else []
    texts = [
        key if raw == key else raw[: (at := raw.index("@"))] + key[at:]
        for raw, key in zip(plain, keys, strict=True)
    ]
    return texts, keys


def suppression_keys(address_keys: Sequence[str], pepper: bytes) -> list[str]:
    """``suppression_key`` of each."""
    together = "\n".join(address_keys)
    if any(sign in together for sign in ("+", "@gmail.com", "@googlemail.com")):
        together = "\n".join([suppression_fold(key) if _may_fold(key) else key for key in address_keys])
    keyed = blake2b(digest_size=KEY_LENGTH, key=first_link(pepper)).copy
    found = []
    for key in together.encode().split(b"\n") if address_keys else ():
        hashing = keyed()
        hashing.update(key)
        found.append(hashing.hexdigest())
    return found if len(pepper) <= LINK_LENGTH else [rotated(key, pepper) for key in found]


STATUSES = {
    SuppressionReason.BOUNCE: SubscriberStatus.BOUNCED,
    SuppressionReason.UNSUBSCRIBED: SubscriberStatus.UNSUBSCRIBED,
    SuppressionReason.COMPLAINT: SubscriberStatus.UNSUBSCRIBED,
    SuppressionReason.MANUAL: SubscriberStatus.UNSUBSCRIBED,
}
"""What a subscriber is who is suppressed for a reason."""


def denied_counts(denials: Mapping[str, Denial]) -> ImportCounts:
    bounced = sum(STATUSES[denial.reason] == SubscriberStatus.BOUNCED for denial in denials.values())
    return ImportCounts(unsubscribed=len(denials) - bounced, bounced=bounced)


_ITS_LIST = TenantId("")
"""Whoever writes the suppressions says whose list it is."""


def denied_mailboxes(
    denials: Mapping[str, Denial], pepper: bytes, note: str | None, now: datetime
) -> list[Suppression]:
    """The suppressions that follow: one for each mailbox, however it is spelled; the gravest wins."""
    found: dict[str, Suppression] = {}
    for key, denial in zip(suppression_keys([*denials], pepper), denials.values(), strict=True):
        known = found.get(key)
        if known is None or GRAVITY[known.reason] < GRAVITY[denial.reason]:
            found[key] = Suppression(key, _ITS_LIST, denial.email, denial.reason, note, now)
    return [*found.values()]


def _may_fold(key: str) -> bool:
    # gmail.com has one dot of its own: with no other there is none to drop.
    return (
        "+" in key or key.endswith("@googlemail.com") or (key.endswith("@gmail.com") and key.count(".") > 1)
    )
