"""Fetch delivery events from a queue, for those who have no public address that SNS could post to.

    receive ─► read (is it genuine?) ─► record ─► remove, once the event is committed
       └─ nothing, and the queue counts none either ─► note that it is drained

A message that is not removed comes again after the queue's visibility timeout; recording is idempotent,
so twice does no harm and never is not possible. What is not genuine stays, for the dead-letter queue or
for its end of life: it may be our own mistake (raw delivery switched on), and then it is worth having.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from sendonce.domain.engine.queued_messages import QueuedMessage, Told
from sendonce.errors import Refused, Unavailable
from sendonce.flows.engine.listen import Listener
from sendonce.flows.engine.record_event import record_told
from sendonce.ports.engine import Events, Meter

log = logging.getLogger(__name__)


class EventQueue(Protocol):
    """Plain blocking calls, made one at a time."""

    def receive(self) -> Sequence[QueuedMessage]:
        """Some of the waiting messages, after a long poll; perhaps none although some wait.

        Raises Unavailable.
        """

    def remove(self, messages: Sequence[QueuedMessage]) -> None: ...

    def waiting(self) -> int:
        """About how many there are: visible, handed out to somebody, and delayed. Raises Unavailable."""

    def hang_up(self) -> None:
        """End a ``receive`` that waits in another thread; the queue cannot be used any more."""


class EventReader(Protocol):
    def read(self, message: QueuedMessage) -> Told:
        """What a message says.

        Raises Refused for what is not genuine, and Unavailable where that could not be found out.
        """


class EventPuller:
    """A worker's duty: ``run_once``, again and again."""

    def __init__(
        self, queue: EventQueue, reader: EventReader, events: Events, listener: Listener, meter: Meter
    ) -> None:
        self._queue = queue
        self._reader = reader
        self._events = events
        self._listener = listener
        self._meter = meter

    async def run_once(self) -> None:
        """Wait for events and record them, until a poll brings none. Raises Unavailable.

        Cancelled, it leaves no thread behind that waits for the queue.
        """
        try:
            while await asyncio.to_thread(self._pull):
                pass
        except asyncio.CancelledError:
            self._queue.hang_up()
            raise

    def _pull(self) -> bool:
        """One round; whether it got on, so that the next one may too."""
        messages = self._queue.receive()
        if not messages:
            self._note_if_drained()
            return False
        done: list[QueuedMessage] = []
        try:
            done.extend(message for message in messages if self._record(message))
        finally:
            if done:
                self._queue.remove(done)
        return bool(done)

    def _note_if_drained(self) -> None:
        """An empty poll is not enough: messages may be in flight to another reader, or delayed."""
        if self._queue.waiting() == 0:
            self._listener.attend()

    def _record(self, message: QueuedMessage) -> bool:
        """Whether the message may go."""
        try:
            told = self._reader.read(message)
        except Refused as exc:
            log.warning("SNS message refused", extra={"fields": {"queued": message.id, "error": str(exc)}})
            self._listener.missed()  # it may be an event all the same, until a dead-letter queue takes it
            return False
        except Unavailable as exc:
            log.warning("SNS message put off", extra={"fields": {"queued": message.id, "error": str(exc)}})
            return False
        if told.ended:
            self._listener.ended(told.topic)
        else:
            self._listener.heard_from(told.topic)
        record_told(self._events, self._meter, self._listener, told.event)
        return True
