"""What a carrier brings: a message that waits in a queue, and what a genuine message says."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from sendonce.domain.engine.events import DeliveryEvent, UnreadableEvent


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """``receipt`` is good for this one delivery; the same message may come again with another."""

    id: str
    receipt: str = field(repr=False)
    body: bytes = field(repr=False)


class Control(StrEnum):
    """What a topic says about itself."""

    CONFIRMED = "confirmed"  # it delivers to us
    ENDED = "noted"  # it delivers no more


@dataclass(frozen=True, slots=True)
class Told:
    """What a genuine message of a topic says: an event, or a word about the topic, or nothing of interest."""

    topic: str
    event: DeliveryEvent | UnreadableEvent | None = None
    control: Control | None = None
