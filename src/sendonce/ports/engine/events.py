"""What the provider tells of letters, and how it is known that nothing was missed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from sendonce.domain.engine.event_route import Listening
from sendonce.domain.engine.events import DeliveryEvent, EventVerdict, RawEvent, UnreadableEvent


class EventIntake(Protocol):
    """Where delivery events are taken in."""

    def record(self, event: DeliveryEvent) -> EventVerdict:
        """Keep the event and apply its effect; the second copy changes nothing.

        Both are durable on return. A store that cannot write them together keeps the event as done only after
        its effect, so that one that was cut off is applied when the provider tells it again.
        """

    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        """The same as ``record`` for one after the other, in fewer commits; all are durable on return.

        Raises Unavailable: then any of them may have been recorded, and recording it again is harmless.
        """

    def keep_unreadable(self, event: UnreadableEvent) -> bool:
        """Keep a genuine message that cannot be read, of which the newest thousand stay; False for a copy."""


class Events(EventIntake, Protocol):
    """The events that were taken in, for people."""

    def unreadable(self, limit: int = 100) -> Sequence[UnreadableEvent]:
        """The newest first."""

    def count_unreadable(self) -> int: ...

    def all(self, *, job_id: str | None = None, limit: int = 100) -> Sequence[DeliveryEvent]: ...

    def raw_before(self, moment: datetime, limit: int) -> Sequence[RawEvent]:
        """The oldest events whose raw text was not looked at yet, if they came before then."""

    def drop_raw(self, events: Sequence[RawEvent]) -> bool:
        """Remove the raw texts of events that ``raw_before`` has just given; all else of them stays.

        False if somebody else did so meanwhile.
        """


class EventRoute(Protocol):
    """Who receives the provider's events, and since when."""

    def attend(self, receiver: str, *, durable: bool, anew: bool = False) -> None:
        """The receiver takes events now. After too long a silence, or ``anew``, it begins a new row."""

    def leave(self, receiver: str) -> None:
        """The receiver signs off: it lost nothing, and takes no more events."""

    def listening(self) -> Listening:
        """The notes of all receivers, of the last days."""

    def subscribed(self, topic: str) -> None:
        """The topic delivers to us: its subscription was confirmed, or a message of it came."""

    def unsubscribed(self, topic: str) -> None:
        """The topic told that it delivers no more."""

    def is_subscribed(self, topics: Collection[str]) -> bool:
        """Whether one of these topics delivers to us."""


class Canaries(Protocol):
    """Letters to the provider's own test mailbox, sent to see that the event route works."""

    def launch(self, canary_id: str, route: str) -> None: ...

    def accepted(self, canary_id: str, message_id: str) -> None: ...

    def last(self, route: str) -> tuple[datetime, bool] | None:
        """When the newest accepted canary of a route was launched, and whether its event came back."""
