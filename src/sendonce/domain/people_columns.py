"""Many people at once, as columns: an import handles a million of them, and an object each costs more
than all its checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import compress

from sendonce.domain.addresses import _PLAIN, _PLAIN_LENGTH, suppression_fold
from sendonce.domain.subscribers import BadRow, NewSubscriber

# Each line of a text in turn: a plain address, or nothing where it is something else.
_plain_lines = re.compile(rf"^(?:({_PLAIN.pattern})$|.*$)", re.MULTILINE).findall


@dataclass(slots=True)
class PeopleColumns:
    """People of an opt-in list. ``emails`` is what is written to, ``keys`` what is compared.

    An entry of ``attributes`` may be None: no attributes.
    """

    emails: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    attributes: list[dict[str, str] | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def of(cls, people: Iterable[NewSubscriber]) -> PeopleColumns:
        columns = cls()
        for person in people:
            columns.append(person.address.text, person.address.key, person.name, person.attributes)
        return columns

    def append(self, email: str, key: str, name: str | None, attributes: dict[str, str] | None) -> None:
        self.emails.append(email)
        self.keys.append(key)
        self.names.append(name)
        self.attributes.append(attributes)

    def extend(self, others: PeopleColumns) -> None:
        self.emails += others.emails
        self.keys += others.keys
        self.names += others.names
        self.attributes += others.attributes

    def where(self, chosen: Sequence[bool]) -> PeopleColumns:
        return PeopleColumns(
            list(compress(self.emails, chosen)),
            list(compress(self.keys, chosen)),
            list(compress(self.names, chosen)),
            list(compress(self.attributes, chosen)),
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


def plain_addresses(raws: Sequence[str]) -> tuple[list[str], list[str]]:
    """Texts and keys of the addresses that are spelled in the plain way, as ``parse_address`` gives them.

    Where a raw spelling is anything else both are empty, and ``parse_address`` has to judge it.
    """
    together = "\n".join(raws)
    plain = _plain_lines(together)
    if len(plain) != len(raws):
        return [""] * len(raws), [""] * len(raws)
    if "=?" in together or max(map(len, plain), default=0) > _PLAIN_LENGTH:
        plain = [raw if len(raw) <= _PLAIN_LENGTH and "=?" not in raw else "" for raw in plain]
    keys = "\n".join(plain).lower().split("\n") if plain else []
    texts = [
        raw if raw == key else raw[: (at := raw.index("@"))] + key[at:]
        for raw, key in zip(plain, keys, strict=True)
    ]
    return texts, keys


def suppression_keys(address_keys: Iterable[str], pepper: bytes) -> list[str]:
    """``suppression_key`` of each."""
    if len(pepper) > blake2b.MAX_KEY_SIZE:
        pepper = blake2b(pepper).digest()
    keyed = blake2b(digest_size=16, key=pepper).copy
    found = []
    for key in address_keys:
        # gmail.com has one dot of its own: with no other and no tag there is nothing to fold.
        if (
            "+" in key
            or key.endswith("@googlemail.com")
            or (key.endswith("@gmail.com") and key.count(".") > 1)
        ):
            key = suppression_fold(key)
        hashing = keyed()
        hashing.update(key.encode())
        found.append(hashing.hexdigest())
    return found
