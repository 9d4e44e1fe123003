"""Taking events: groups share commits, and nobody is answered before the commit of its own event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from sendonce.adapters.metrics import NullMetrics
from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.events import DeliveryEvent, EventVerdict
from sendonce.domain.engine.queued_messages import Control, Told
from sendonce.errors import Unavailable
from sendonce.flows.engine.listen import Listener
from sendonce.flows.engine.take_events import EventIntake
from tests.conformance.stage import event_of

TOPIC = "arn:topic"


class _Events:
    """A store that notes its commits; ``bad`` events cannot be committed, and nothing when it is ``away``."""

    def __init__(self) -> None:
        self.behind = MemoryStore()
        self.commits: list[int] = []
        self.bad: set[str] = set()
        self.away = False

    def record_all(self, events: Sequence[DeliveryEvent]) -> Sequence[EventVerdict]:
        self.commits.append(len(events))
        if self.away or any(event.event_id in self.bad for event in events):
            raise Unavailable("it cannot be committed")
        return self.behind.events.record_all(events)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind.events, name)


class Desk:
    """An intake whose writer does not begin before it may."""

    def __init__(self) -> None:
        self.events = _Events()
        self.listener = Listener(self.events.behind.event_route, {TOPIC})
        self.may_write = asyncio.Event()
        self.intake = EventIntake(self.events, self.listener, NullMetrics(), self._in_writer)  # type: ignore[arg-type]

    async def _in_writer(self, call: Callable[[Sequence[Told]], Any], group: Sequence[Told]) -> Any:
        await self.may_write.wait()
        return call(group)

    def bring(self, count: int) -> list[asyncio.Task[str]]:
        return [asyncio.create_task(self.intake.take(Told(TOPIC, event_of(None)))) for _ in range(count)]


async def settled() -> None:
    """Let everybody run who can."""
    for _ in range(20):
        await asyncio.sleep(0)


def run(life: Callable[[Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        await life(Desk())

    asyncio.run(main())


def test_what_comes_meanwhile_shares_the_next_commit() -> None:
    """One has begun; the ten that come after it are one group, each with an answer of its own."""

    async def life(desk: Desk) -> None:
        first = desk.bring(1)
        await settled()
        others = desk.bring(10)
        await settled()
        assert not any(task.done() for task in [*first, *others])
        desk.may_write.set()
        assert await asyncio.gather(*first, *others) == ["unknown"] * 11
        assert desk.events.commits == [1, 10]

    run(life)


def test_a_group_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a person who unsubscribes meanwhile does not wait for a thousand events."""
    monkeypatch.setattr(EventIntake, "most_together", 4)

    async def life(desk: Desk) -> None:
        desk.may_write.set()
        await asyncio.gather(*desk.bring(10))
        assert desk.events.commits == [4, 4, 2]

    run(life)


def test_an_event_that_cannot_be_committed_costs_the_others_nothing() -> None:
    """The group fails, so each is tried alone; the bad one has to come again."""

    async def life(desk: Desk) -> None:
        events = [event_of(None) for _ in range(4)]
        desk.events.bad.add(events[1].event_id)
        desk.may_write.set()
        taking = [desk.intake.take(Told(TOPIC, event)) for event in events]
        answers = await asyncio.gather(*taking, return_exceptions=True)
        assert [str(answer) for answer in answers] == [
            "unknown",
            "it cannot be committed",
            "unknown",
            "unknown",
        ]
        assert isinstance(answers[1], Unavailable)

    run(life)


def test_a_store_that_is_away_is_not_asked_for_each_event() -> None:
    """The group, then two alone: then it is the store. Everybody has to come again."""

    async def life(desk: Desk) -> None:
        desk.events.away = True
        desk.may_write.set()
        answers = await asyncio.gather(*desk.bring(30), return_exceptions=True)
        assert {type(answer) for answer in answers} == {Unavailable}
        assert desk.events.commits == [30, 1, 1]

    run(life)


def test_too_many_that_wait_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that hangs must not fill the memory; what waits already is answered in the end."""
    monkeypatch.setattr(EventIntake, "most_waiting", 5)

    async def life(desk: Desk) -> None:
        writing = desk.bring(1)
        await settled()
        waiting = desk.bring(5)
        await settled()
        with pytest.raises(Unavailable, match="5 events wait"):
            await desk.intake.take(Told(TOPIC, event_of(None)))
        desk.may_write.set()
        assert set(await asyncio.gather(*writing, *waiting)) == {"unknown"}

    run(life)


def test_whoever_gave_up_waiting_stops_nobody() -> None:
    """Its event is recorded all the same."""

    async def life(desk: Desk) -> None:
        gone, stays = desk.bring(2)
        await settled()
        gone.cancel()
        await settled()
        desk.may_write.set()
        assert await stays == "unknown"
        assert len(desk.events.behind.events.all()) == 2

    run(life)


def test_the_end_of_the_writer_leaves_nobody_waiting() -> None:
    """The service stops: who waits is told so, whether its group has begun or not."""

    async def life(desk: Desk) -> None:
        begun = desk.bring(1)
        await settled()
        waiting = desk.bring(2)
        await settled()
        writer = desk.intake._writing
        assert writer is not None
        writer.cancel()
        await asyncio.gather(writer, *begun, *waiting, return_exceptions=True)
        assert all(task.cancelled() for task in [*begun, *waiting])

    run(life)


def test_words_about_a_topic_are_answered_among_events() -> None:
    """In the order in which they came; a topic that says goodbye is not listened to any more."""

    async def life(desk: Desk) -> None:
        desk.may_write.set()
        group = [
            Told(TOPIC, event_of(None)),
            Told(TOPIC),
            Told(TOPIC, control=Control.CONFIRMED),
            Told(TOPIC, control=Control.ENDED),
        ]
        answers = await asyncio.gather(*(desk.intake.take(told) for told in group))
        assert answers == ["unknown", "ignored", "confirmed", "noted"]
        assert not desk.events.behind.event_route.is_subscribed({TOPIC})

    run(life)
