"""One person's data: what is kept, and what stays of it after an erasure.

A recipient who asked to be forgotten keeps a place in the books, under a keyed hash: the letters were sent,
and the sums must hold. The suppression list keeps its own keyed hash, so nobody writes to them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from sendonce.domain.engine.events import DeliveryEvent
from sendonce.domain.engine.jobs import Job
from sendonce.domain.people.peppers import KEY_LENGTH, first_link, rekeyed, rotated
from sendonce.domain.people.subscribers import Subscriber
from sendonce.domain.people.suppressions import Suppression

ERASED = "erased:"
ERASED_NOTE = "erased on request"


def erased_name(address_key: str, pepper: bytes) -> str:
    """What stands in place of an address. The same for the same address, so that it is still one person."""
    if address_key.startswith(ERASED):
        return address_key
    hashing = blake2b(address_key.encode(), digest_size=KEY_LENGTH, key=first_link(pepper), person=b"erased")
    return ERASED + rotated(hashing.hexdigest(), pepper)


def rekeyed_name(text: str, link: bytes) -> str:
    """What stands in place of an address after a rotation; any other text as it is."""
    return ERASED + rekeyed(text.removeprefix(ERASED), link) if is_erased(text) else text


def is_erased(recipient: str) -> bool:
    return recipient.startswith(ERASED)


class Scrubber:
    """Takes the spellings of an address out of texts that others wrote, such as a server's reply."""

    def __init__(self, spellings: Iterable[str], replacement: str) -> None:
        self.spellings = sorted(
            {s.lower() for s in spellings if s and not is_erased(s)}, key=len, reverse=True
        )
        self._replacement = replacement
        atext = r"[\w!#$%&'*+/=?^`{|}~.-]"
        names = "|".join(map(re.escape, self.spellings)) or r"(?!)"
        self._pattern = re.compile(rf"(?<!{atext})(?:{names})(?![\w-]|\.\w)", re.IGNORECASE)

    def text(self, value: str | None) -> str | None:
        return None if value is None else self._pattern.sub(self._replacement, value)

    def mentioned_in(self, raw: bytes) -> bool:
        text = raw.decode("utf-8", "replace")
        return self.text(text) != text

    def document(self, value: Any) -> Any:
        """The same for JSON, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.document(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.document(item) for key, item in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class Erasure:
    """How many rows had something to erase; ``suppressed`` if nobody had suppressed the person before."""

    subscribers: int = 0
    letters: int = 0
    events: int = 0
    suppressions: int = 0
    notes: int = 0
    suppressed: bool = False

    @property
    def changed(self) -> bool:
        return self != Erasure()


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that did not end its job."""

    attempt: int
    outcome: str
    code: str | None
    reason: str | None
    claimed_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class LetterTo:
    """A letter to the person: its job, the attempts before the last, and what the world told of it."""

    job: Job
    attempts: Sequence[Attempt] = ()
    events: Sequence[DeliveryEvent] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """A row that names the person in a room that knows more of it: a lead, a contact, mail that came back.

    ``tenant_id`` is None for mail: a mailbox may serve several.
    """

    kind: str
    tenant_id: str | None
    at: datetime | None
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PersonFile:
    """All that is kept about a person, of every tenant and every spelling of the address."""

    subscribers: Sequence[Subscriber] = ()
    suppressions: Sequence[Suppression] = ()
    letters: Sequence[LetterTo] = field(default=())
    traces: Sequence[Trace] = ()
