"""Take what the provider tells, whoever brings it: SNS by HTTP, or a worker that empties a queue.

    take ─┐
    take ─┼─► the next group ─► one writer: heard from the topics, record, count ─► each its answer
    take ─┘

Whatever comes while a group is being committed makes up the next one. Nobody gets an answer before the commit
of its own event: a carrier that has an answer does not bring the event again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from sendonce.domain.engine.events import DeliveryEvent, EventVerdict, UnreadableEvent
from sendonce.domain.engine.queued_messages import Control, Told
from sendonce.errors import Unavailable
from sendonce.flows.engine.listen import Listener
from sendonce.ports.engine import Events, Meter

log = logging.getLogger(__name__)

_ALARMS = {
    EventVerdict.DUPLICATE_SEND: "a second copy of a letter left",
    EventVerdict.QUARANTINED: "an event names an attempt that was never issued; all claims are stopped",
}

Answer = str | Unavailable
InWriter = Callable[[Callable[[Sequence[Told]], list[Answer]], Sequence[Told]], Awaitable[list[Answer]]]
"""Runs a call in a thread that may wait for the store."""

_Waiting = tuple[Told, asyncio.Future[str]]


class EventIntake:
    """Belongs to one event loop. ``most_waiting`` bounds the memory that a slow store costs."""

    most_together = 64
    most_waiting = 500

    def __init__(self, events: Events, listener: Listener, meter: Meter, in_writer: InWriter) -> None:
        self._recorder = _Recorder(events, listener, meter)
        self._in_writer = in_writer
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def take(self, told: Told) -> str:
        """What became of a genuine message, once that is durable.

        Raises Unavailable: then the carrier has to bring it again.
        """
        if len(self._waiting) >= self.most_waiting:
            raise Unavailable(f"{len(self._waiting)} events wait to be recorded already.")
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((told, answer))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await answer

    async def _write(self) -> None:
        """Group after group, until nobody waits."""
        try:
            while self._waiting:
                group = self._waiting[: self.most_together]
                del self._waiting[: self.most_together]
                await self._answer(group)
        finally:
            self._writing = None
            _give_up(self._waiting)

    async def _answer(self, group: Sequence[_Waiting]) -> None:
        answers: Sequence[Answer | Exception]
        try:
            answers = await self._in_writer(self._recorder.take_all, [told for told, _ in group])
        except asyncio.CancelledError:  # the service ends
            _give_up(group)
            raise
        except Exception as exc:  # noqa: BLE001 (it belongs to those who wait, not to the writer)
            answers = [exc] * len(group)
        for (_, waiting), answer in zip(group, answers, strict=True):
            if waiting.done():
                continue  # it was cancelled: nobody waits any more
            if isinstance(answer, Exception):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)


def _give_up(waiting: Sequence[_Waiting]) -> None:
    for _, answer in waiting:
        answer.cancel()


class _Recorder:
    """The writer's side: plain calls of the store, one group at a time."""

    def __init__(self, events: Events, listener: Listener, meter: Meter) -> None:
        self._events = events
        self._listener = listener
        self._meter = meter

    def take_all(self, group: Sequence[Told]) -> list[Answer]:
        """The answer to each. Raises Unavailable where it is the same for all."""
        for topic in dict.fromkeys(told.topic for told in group if told.control is not Control.ENDED):
            self._listener.heard_from(topic)
        recorded = iter(self._record([told.event for told in group if isinstance(told.event, DeliveryEvent)]))
        return [
            next(recorded) if isinstance(told.event, DeliveryEvent) else self._take_other(told)
            for told in group
        ]

    def _record(self, events: Sequence[DeliveryEvent]) -> list[Answer]:
        try:
            verdicts = self._events.record_all(events)
        except Unavailable as exc:
            return [exc] if len(events) == 1 else self._record_one_by_one(events)
        for event, verdict in zip(events, verdicts, strict=True):
            self._tell(event, verdict)
        return [str(verdict) for verdict in verdicts]

    def _record_one_by_one(self, events: Sequence[DeliveryEvent]) -> list[Answer]:
        """A group has failed: one of its events may be to blame, and must not cost the others. Where two in a
        row fail alone, it is the store, and the rest need not be tried."""
        answers: list[Answer] = []
        for event in events:
            last_two = answers[-2:]
            if len(last_two) == 2 and all(isinstance(answer, Unavailable) for answer in last_two):
                answers.append(last_two[-1])
            else:
                answers += self._record([event])
        return answers

    def _tell(self, event: DeliveryEvent, verdict: EventVerdict) -> None:
        self._meter.count_event(event.kind, verdict)
        if verdict in _ALARMS:
            facts = {"job": event.job_id, "attempt": event.attempt, "event_id": event.event_id}
            log.error(_ALARMS[verdict], extra={"fields": {**facts, "kind": str(event.kind)}})

    def _take_other(self, told: Told) -> Answer:
        try:
            if isinstance(told.event, UnreadableEvent):
                return self._keep_unreadable(told.event)
            if told.control is Control.ENDED:
                self._listener.ended(told.topic)
            return str(told.control or "ignored")
        except Unavailable as exc:
            return exc

    def _keep_unreadable(self, event: UnreadableEvent) -> str:
        """It is genuine and will not become readable: coming again would not help, so it is kept as it is.

        It may be the Send event of a letter in doubt: it came, and yet nothing was heard.
        """
        self._listener.missed()
        if self._events.keep_unreadable(event):
            self._meter.count_unreadable()
            facts = {"event_id": event.event_id, "topic": event.source, "error": event.why}
            hint = "'sendonce events list --unreadable' shows it"
            log.warning("unreadable SES event", extra={"fields": {**facts, "hint": hint}})
        return "unreadable"
