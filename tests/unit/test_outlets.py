"""Outlets of added senders: opened on demand, closed when idle, each with its own trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.dispatches import NewDispatch, NewJob
from sendonce.domain.engine.sender_identities import NewSender, SenderIdentity
from sendonce.domain.engine.senders import SenderKeys
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import BadSetting, Unavailable, WorkerBuried
from sendonce.flows.engine import outlets
from sendonce.flows.engine.outlets import Outlets, Way

SOON = timedelta(seconds=10)


class FakeOutlet:
    """Runs until it is stopped, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.idle = False
        self.rests = False
        self.settled = 0
        self.stopped = asyncio.Event()
        self.closed = False
        self._error = error

    async def open(self) -> None:
        if self._error is not None:
            raise self._error

    async def run(self) -> None:
        await self.stopped.wait()

    def stop(self) -> None:
        self.stopped.set()

    async def close(self) -> None:
        self.closed = True


class Floor:
    """A store with one added sender and a letter of it, and the outlets that were made."""

    def __init__(self, make: Callable[[SenderIdentity], FakeOutlet] | None = None) -> None:
        self.store = MemoryStore()
        self.made: list[FakeOutlet] = []
        self.sender = self.add()
        self._make = make or (lambda _: FakeOutlet())
        self.outlets = Outlets(
            self.store, cast(Any, self._open), lambda it: SenderKeys(it.address if it else "")
        )

    def add(self, place: str = "/one") -> SenderIdentity:
        new = NewSender("news@example.com", "maildir", place)
        return self.store.senders.add(DEFAULT_TENANT, new, "ann")

    def plan(self) -> None:
        new = NewDispatch("batch", "owner", None, self.sender.id)
        dispatch = self.store.dispatches.open(DEFAULT_TENANT, new)
        self.store.dispatches.plan(dispatch.id, [NewJob(parse_address("ann@example.org"))])
        self.store.dispatches.run(dispatch.id)

    def _open(self, way: Way) -> FakeOutlet:
        self.made.append(self._make(way.identity))
        return self.made[-1]

    async def look(self) -> None:
        """A round, and time for what it began."""
        await self.outlets.look()
        await asyncio.sleep(0.01)


def play(scene: Callable[[Floor], Any], floor: Callable[[], Floor] = Floor) -> None:
    asyncio.run(scene(floor()))


def test_an_outlet_is_opened_when_letters_are_due() -> None:
    async def scene(floor: Floor) -> None:
        await floor.look()
        assert floor.made == []
        assert await floor.outlets.idle(SOON)
        floor.plan()
        assert not await floor.outlets.idle(SOON)
        await floor.look()
        await floor.look()
        assert len(floor.made) == 1
        floor.made[0].settled = 1
        await floor.outlets.close()
        assert floor.made[0].closed
        assert floor.outlets.settled == 1

    play(scene)


def test_an_outlet_that_waits_for_its_provider_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts the troubles: a new one would begin to count again."""
    monkeypatch.setattr(outlets, "IDLE_FOR", 0.0)

    async def scene(floor: Floor) -> None:
        floor.plan()
        await floor.look()
        floor.made[0].idle = floor.made[0].rests = True
        await floor.look()
        assert not floor.made[0].closed
        floor.made[0].rests = False
        await floor.look()
        assert floor.made[0].closed
        await floor.outlets.close()

    play(scene)


def test_an_idle_outlet_is_closed_and_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlets, "IDLE_FOR", -1.0)

    async def scene(floor: Floor) -> None:
        floor.plan()
        await floor.look()
        floor.made[0].idle = True
        await floor.look()
        assert floor.made[0].closed
        await floor.look()
        assert len(floor.made) == 2
        await floor.outlets.close()

    play(scene)


def test_a_changed_sender_gets_another_outlet_and_a_removed_one_gets_none() -> None:
    async def scene(floor: Floor) -> None:
        floor.plan()
        await floor.look()
        floor.store.senders.remove(floor.sender.id, "ann")
        await floor.look()
        assert floor.made[0].closed
        await floor.look()
        assert len(floor.made) == 1
        assert await floor.outlets.idle(SOON)
        floor.add("/another")
        await floor.look()
        assert len(floor.made) == 2
        await floor.outlets.close()

    play(scene)


def _without_secret(_: SenderIdentity) -> FakeOutlet:
    raise BadSetting("SENDER_NEWS is not set.")


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (_without_secret, "settings", "SENDER_NEWS is not set."),
        (lambda _: FakeOutlet(ZeroDivisionError("our own mistake")), "failed", "ZeroDivisionError"),
    ],
    ids=["its secret is missing", "our code fails"],
)
def test_what_cannot_be_served_is_held(
    make: Callable[[SenderIdentity], FakeOutlet], code: str, words: str
) -> None:
    """With the reason; then nobody waits for it, and it is tried again when the hold says so."""

    async def scene(floor: Floor) -> None:
        floor.plan()
        await floor.look()
        await floor.look()
        hold = floor.store.sender_holds.get("news@example.com")
        assert hold is not None
        assert (hold.code, hold.tries) == (code, 1)
        assert words in hold.reason
        await floor.look()
        assert await floor.outlets.idle(SOON)

    play(scene, lambda: Floor(make))


def test_a_service_that_does_not_answer_holds_nobody() -> None:
    async def scene(floor: Floor) -> None:
        floor.plan()
        await floor.look()
        await floor.look()
        assert floor.store.sender_holds.all() == []
        assert len(floor.made) == 2
        await floor.outlets.close()

    play(scene, lambda: Floor(lambda _: FakeOutlet(Unavailable("the database is away"))))


def test_a_buried_outlet_ends_the_process() -> None:
    async def scene(floor: Floor) -> None:
        floor.plan()
        await floor.look()
        with pytest.raises(WorkerBuried):
            await floor.look()

    play(scene, lambda: Floor(lambda _: FakeOutlet(WorkerBuried("buried"))))
