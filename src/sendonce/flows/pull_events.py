"""Fetch delivery events from a queue, for those who have no public address that SNS could post to.

    receive ─► read (is it genuine?) ─► record_event ─► remove, once the event is committed

A message that is not removed comes again after the queue's visibility timeout; recording is idempotent,
so twice does no harm and never is not possible. What is not genuine stays, for the dead-letter queue or
for its end of life: it may be our own mistake (raw delivery switched on), and then it is worth having.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from sendonce.domain.events import DeliveryEvent
from sendonce.domain.queued_messages import QueuedMessage
from sendonce.errors import BadInput, Refused, Unavailable
from sendonce.flows.record_event import record_event
from sendonce.ports import EventRoute, Events, Meter

log = logging.getLogger(__name__)

_SHOWN_BYTES = 2_000
FULL_ROUND = 10
"""As many messages as SQS gives at a time."""
QUEUE = "queue"


class EventQueue(Protocol):
    """Plain blocking calls, made one at a time."""

    def receive(self) -> Sequence[QueuedMessage]:
        """Wait for messages; none when the wait was in vain. Raises Unavailable."""

    def remove(self, messages: Sequence[QueuedMessage]) -> None: ...

    def hang_up(self) -> None:
        """End a ``receive`` that waits in another thread; the queue cannot be used any more."""


class EventReader(Protocol):
    def read(self, message: QueuedMessage) -> DeliveryEvent | None:
        """The event in a message; None where there is nothing to record.

        Raises Refused for what is not genuine, BadInput for what is and cannot be read, and Unavailable
        where that could not be found out.
        """


class EventPuller:
    """A worker's duty: ``run_once``, again and again."""

    def __init__(
        self, queue: EventQueue, reader: EventReader, events: Events, route: EventRoute, meter: Meter
    ) -> None:
        self._queue = queue
        self._reader = reader
        self._events = events
        self._route = route
        self._meter = meter

    async def run_once(self) -> None:
        """Wait for events and see to them, until the queue has no more. Raises Unavailable.

        Cancelled, it leaves no thread behind that waits for the queue.
        """
        try:
            while await asyncio.to_thread(self._pull):
                pass
        except asyncio.CancelledError:
            self._queue.hang_up()
            raise

    def _pull(self) -> bool:
        """One round; whether it brought something, so that there may be more."""
        messages = self._queue.receive()
        done: list[QueuedMessage] = []
        try:
            done.extend(message for message in messages if self._see_to(message))
        finally:
            if done:
                self._queue.remove(done)
        if len(done) == len(messages) < FULL_ROUND:
            # Only then the queue holds nothing that would speak for a letter in doubt.
            self._route.attend(QUEUE, durable=True)
        return bool(done)

    def _see_to(self, message: QueuedMessage) -> bool:
        """Whether the message may go."""
        try:
            event = self._reader.read(message)
        except Refused as exc:
            log.warning("SNS message refused", extra={"fields": {"queued": message.id, "error": str(exc)}})
            return False
        except BadInput as exc:
            raw = message.body[:_SHOWN_BYTES].decode("utf-8", "replace")
            facts = {"queued": message.id, "error": str(exc), "raw": raw}
            log.warning("unreadable SES event", extra={"fields": facts})
            return True
        except Unavailable as exc:
            log.warning("SNS message put off", extra={"fields": {"queued": message.id, "error": str(exc)}})
            return False
        if event is not None:
            record_event(self._events, self._meter, event)
        return True
