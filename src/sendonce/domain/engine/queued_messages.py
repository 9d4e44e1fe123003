"""A message that waits in a queue: it is ours to remove, by its receipt, once we have seen to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sendonce.domain.engine.events import DeliveryEvent, UnreadableEvent


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """``receipt`` is good for this one delivery; the same message may come again with another."""

    id: str
    receipt: str = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Told:
    """What a genuine message of a topic says. ``ended``: the topic delivers no more."""

    topic: str
    event: DeliveryEvent | UnreadableEvent | None = None
    ended: bool = False
