"""Fetch delivery events from a queue, for those who have no public address that SNS could post to.

    receive ─► read (is it genuine?) ─► take ─► remove, once the event is committed
       └─ nothing, and the queue counts none either ─► note that it is drained

A message that is not removed comes again after the queue's visibility timeout; recording is idempotent,
so twice does no harm and never is not possible. What is not genuine stays, for the dead-letter queue or
for its end of life: it may be our own mistake (raw delivery switched on), and then it is worth having.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from sendonce.domain.engine.queued_messages import QueuedMessage, Told
from sendonce.errors import RefusedByRule, Unavailable
from sendonce.flows.engine.listen import Listener
from sendonce.flows.engine.take_events import EventIntake

log = logging.getLogger(__name__)

FULL_BATCH = 10
"""Where so many messages come at once, more are probably waiting: then all receivers help."""


class EventQueue(Protocol):
    """Plain blocking calls, made one at a time."""

    def receive(self, *, patiently: bool = True) -> Sequence[QueuedMessage]:
        """Some of the waiting messages; perhaps none although some wait. ``patiently`` is a long poll.

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

        Raises RefusedByRule for what is not genuine, and Unavailable where that could not be found out.
        """


class EventPuller:
    """A worker's duty: ``run_once``, again and again.

    The first receiver waits for messages; the others, each with a connection of its own to the same queue,
    help it while many come. All of them leave the writing to one intake.
    """

    def __init__(
        self, receivers: Sequence[EventQueue], reader: EventReader, intake: EventIntake, listener: Listener
    ) -> None:
        self._first, *self._helpers = receivers
        self._reader = reader
        self._intake = intake
        self._listener = listener

    async def run_once(self) -> None:
        """Wait for events and record them, until a poll brings none. Raises Unavailable.

        Cancelled, it leaves no thread behind that waits for the queue.
        """
        # Threads of its own: those of the loop are few, and the worker needs them.
        threads = ThreadPoolExecutor(1 + len(self._helpers), thread_name_prefix="events")
        try:
            while await self._pull(_in(threads)):
                pass
        except asyncio.CancelledError:
            for queue in (self._first, *self._helpers):
                queue.hang_up()
            raise
        finally:
            threads.shutdown(wait=False)

    async def _pull(self, in_thread: _InThread) -> bool:
        """One round; whether it got on, so that the next one may too.

        The queue is looked at only by a poll that began when nothing of it was in our hands: what one of us
        has received and not removed yet must not pass for an empty queue.
        """
        messages = await in_thread(self._first.receive)
        if not messages:
            await in_thread(self._note_if_drained)
            return False
        if len(messages) < FULL_BATCH or not self._helpers:
            return await self._take(self._first, messages, in_thread)
        got_on = await asyncio.gather(
            self._empty(self._first, in_thread, messages),
            *(self._empty(queue, in_thread) for queue in self._helpers),
            return_exceptions=True,
        )
        failures = [each for each in got_on if isinstance(each, BaseException)]
        if failures:
            raise failures[0]
        return any(got_on)

    async def _empty(
        self, queue: EventQueue, in_thread: _InThread, messages: Sequence[QueuedMessage] = ()
    ) -> bool:
        """Take these messages and then others, until a poll brings none; whether anything was taken."""
        got_on = False
        while messages := messages or await in_thread(partial(queue.receive, patiently=False)):
            if not await self._take(queue, messages, in_thread):
                break
            got_on, messages = True, ()
        return got_on

    async def _take(self, queue: EventQueue, messages: Sequence[QueuedMessage], in_thread: _InThread) -> bool:
        """Whether one of them may go."""
        told = await in_thread(lambda: [self._read(message) for message in messages])
        read = [(message, each) for message, each in zip(messages, told, strict=True) if each is not None]
        taking = [self._intake.take(each) for _, each in read]
        answers = await asyncio.gather(*taking, return_exceptions=True)
        done = [message for (message, _), told in zip(read, answers, strict=True) if isinstance(told, str)]
        if done:
            await in_thread(partial(queue.remove, done))
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        if failures:
            raise failures[0]
        return bool(done)

    def _note_if_drained(self) -> None:
        """An empty poll is not enough: messages may be in flight to another reader, or delayed."""
        if self._first.waiting() == 0:
            self._listener.attend()

    def _read(self, message: QueuedMessage) -> Told | None:
        """None for a message that has to stay."""
        try:
            return self._reader.read(message)
        except RefusedByRule as exc:
            log.warning("SNS message refused", extra={"fields": {"queued": message.id, "error": str(exc)}})
            self._listener.missed()  # it may be an event all the same, until a dead-letter queue takes it
        except Unavailable as exc:
            log.warning("SNS message put off", extra={"fields": {"queued": message.id, "error": str(exc)}})
        return None


_InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


def _in(threads: ThreadPoolExecutor) -> _InThread:
    return lambda call: asyncio.get_running_loop().run_in_executor(threads, call)
