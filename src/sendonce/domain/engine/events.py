"""Delivery events: what the world tells about a letter after it left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sendonce.domain.engine.addresses import Address, parse_address
from sendonce.errors import BadInput


class EventKind(StrEnum):
    SENT = "sent"
    DELIVERED = "delivered"
    BOUNCE = "bounce"
    COMPLAINT = "complaint"
    DEFERRED = "deferred"
    REJECT = "reject"


MARKS = {
    EventKind.SENT: "send_event_at",
    EventKind.DELIVERED: "delivered_at",
    EventKind.BOUNCE: "bounced_at",
    EventKind.COMPLAINT: "complained_at",
    EventKind.REJECT: "rejected_at",
}
"""Which mark of the job each kind of event sets, with the event's own time.

Any event proves the acceptance, but only a Send event shows that Send events come through: where one is
missing, another letter's may be missing too.
"""


class BounceType(StrEnum):
    PERMANENT = "permanent"
    TRANSIENT = "transient"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class DeliveryEvent:
    """One event, normalised. ``raw`` is kept beside it word for word.

    ``event_id`` is the carrier's id (the SNS MessageId) and ``natural_key`` what makes two carriers'
    copies the same fact; the store refuses a second row of either.
    Every kind proves that the provider had accepted the attempt, ``reject`` too: SES tells it of a
    letter that it took and then would not pass on.
    """

    event_id: str
    natural_key: str
    kind: EventKind
    occurred_at: datetime
    message_id: str | None
    job_id: str | None
    attempt: int | None
    recipients: tuple[str, ...] = ()
    bounce_type: BounceType | None = None
    bounce_subtype: str | None = None
    code: str | None = None
    reason: str | None = None
    canary: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    destinations: tuple[str, ...] = ()

    def addressees(self) -> list[Address]:
        """The recipients that the letter was really addressed to.

        A receiving server writes what it likes into a bounce: of a letter that we do not know, whoever else
        is named there must not be suppressed.
        """
        ours = {address.key for address in _readable(self.destinations)}
        return [address for address in _readable(self.recipients) if address.key in ours]


@dataclass(frozen=True, slots=True)
class ArrivingEvent(DeliveryEvent):
    """With the JSON text of ``raw``, so that a store can keep it as it came."""

    raw_text: str = "{}"


def _readable(texts: Iterable[str]) -> Iterator[Address]:
    for text in texts:
        with suppress(BadInput):
            yield parse_address(text)


@dataclass(frozen=True, slots=True)
class UnreadableEvent:
    """A genuine message that we cannot read, word for word. ``source`` is the topic that brought it."""

    event_id: str
    source: str
    why: str
    raw: bytes
    received_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event word for word, under the id of its row: ids rise with the time of arrival."""

    id: str
    event_id: str
    kind: EventKind
    job_id: str | None
    received_at: datetime
    raw: dict[str, Any]


MOST_UNREADABLE = 1000
"""How many unreadable events are kept, the newest."""


class EventVerdict(StrEnum):
    """What became of an event that came in."""

    APPLIED = "applied"
    DUPLICATE_EVENT = "duplicate_event"  # seen before: nothing changed
    DUPLICATE_SEND = "duplicate_send"  # proof that a second copy of a letter left: an alarm
    UNKNOWN = "unknown"  # not our job; kept raw, and a bounce or complaint still suppresses
    QUARANTINED = "quarantined"  # names an attempt that was never issued: the database was rolled back
