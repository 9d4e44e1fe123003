"""The provider's silence proves something only for a time in which somebody listened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.event_route import PUSH_PATIENCE, SILENT_AFTER, Receiver, RouteWatch, watch
from sendonce.domain.jobs import JobState
from sendonce.domain.outcomes import Accepted, Outcome
from sendonce.flows.resolve_doubts import DoubtPolicy, DoubtResolver
from tests.conformance.stage import Stage, event_of

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
QUIET = timedelta(minutes=30)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def receiver(since: float, seen: float, *, durable: bool = False) -> Receiver:
    return Receiver(ago(since), ago(seen), durable)


# -- the stretch -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("receivers", "stretch"),
    [
        ([], None),
        ([receiver(90, 3)], None),  # it fell silent
        ([receiver(90, 0)], RouteWatch(ago(90), None, durable=False)),
        ([receiver(90, 9), receiver(10, 0)], RouteWatch(ago(90), None, durable=False)),  # one took over
        ([receiver(90, 11), receiver(10, 0)], RouteWatch(ago(10), timedelta(minutes=1), durable=False)),
        ([receiver(9, 0.5), receiver(0.4, 0)], RouteWatch(ago(0.4), timedelta(seconds=6), durable=False)),
        ([receiver(90, 0, durable=True)], RouteWatch(ago(90), None, durable=True)),
        ([receiver(9, 0, durable=True), receiver(8, 0)], RouteWatch(ago(9), None, durable=False)),
    ],
)
def test_the_stretch_that_lasts_till_now(receivers: list[Receiver], stretch: RouteWatch | None) -> None:
    assert watch(receivers, NOW) == stretch


_RECEIVERS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 200)).map(
        lambda ends: receiver(max(ends) / 10, min(ends) / 10)
    ),
    max_size=6,
)


@given(_RECEIVERS)
def test_in_every_moment_of_the_stretch_somebody_received(receivers: list[Receiver]) -> None:
    found = watch(receivers, NOW)
    if found is None:
        assert all(NOW - each.seen > SILENT_AFTER for each in receivers)
        return
    last_seen = max(each.seen for each in receivers)
    moment = found.since
    while moment <= last_seen:
        assert any(each.since <= moment <= each.seen for each in receivers)
        moment += timedelta(seconds=6)
    before = found.since - timedelta(milliseconds=1)
    assert not any(each.since <= before <= each.seen for each in receivers)


def test_what_a_break_may_have_lost() -> None:
    """SNS tries again for an hour; a queue keeps for days; a letter claimed since cannot be missed."""
    short, long = RouteWatch(ago(10), PUSH_PATIENCE, durable=False), PUSH_PATIENCE + timedelta(seconds=1)
    assert not short.may_have_missed(ago(20))
    assert RouteWatch(ago(10), long, durable=False).may_have_missed(ago(20))
    assert RouteWatch(ago(10), None, durable=False).may_have_missed(ago(20))
    assert not RouteWatch(ago(10), long, durable=False).may_have_missed(ago(10))
    assert not RouteWatch(ago(10), long, durable=True).may_have_missed(ago(20))


# -- what follows for a doubt ----------------------------------------------------------------------


@dataclass
class World:
    """A letter in doubt, with everything that proves its absence but for the receivers."""

    now: datetime = NOW

    def __post_init__(self) -> None:
        self.store = MemoryStore(lambda: self.now)
        self.stage = Stage(self.store)  # type: ignore[arg-type,unused-ignore]

    name = "ses"

    async def server_time(self) -> datetime:
        return self.now

    async def send_canary(self, canary_id: str, sender: str) -> Outcome:
        return Accepted(f"{canary_id} of {sender}")

    def doubt(self) -> None:
        self.stage.running(2)
        self.job = self.stage.in_doubt()
        self.wait(0.1)
        later = self.stage.claim_one()
        self.stage.settle(later, Accepted("later"))
        self.stage.record(event_of(later))

    def wait(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)

    def listen(self, receiver: str, minutes: float) -> None:
        """Somebody receives events for so long."""
        for _ in range(int(minutes * 2)):
            self.store.event_route.attend(receiver, durable=False)
            self.wait(0.5)
        self.store.event_route.attend(receiver, durable=False)

    def resolve(self) -> JobState:
        policy = DoubtPolicy(QUIET, timedelta(minutes=20), "news@example.com")
        asyncio.run(DoubtResolver(self.store, self, policy, lambda: "canary").run())
        return self.stage.state(self.job)


def test_a_quiet_time_with_open_ears_proves_absence() -> None:
    world = World()
    world.listen("one", 1)
    world.doubt()
    world.listen("one", 29)
    assert world.resolve() == JobState.IN_DOUBT
    world.listen("one", 2)
    assert world.resolve() == JobState.SCHEDULED


def test_nothing_is_proven_while_nobody_listens() -> None:
    world = World()
    world.listen("one", 1)
    world.doubt()
    world.wait(600)
    assert world.resolve() == JobState.IN_DOUBT


def test_the_quiet_time_begins_anew_when_the_service_comes_back() -> None:
    """The provider kept trying meanwhile: its next try may bring the event."""
    world = World()
    world.listen("one", 1)
    world.doubt()
    world.wait(25)
    world.listen("two", 29)
    assert world.resolve() == JobState.IN_DOUBT
    world.listen("two", 2)
    assert world.resolve() == JobState.SCHEDULED


def test_a_break_in_which_events_may_be_lost_leaves_the_doubt_to_a_person() -> None:
    world = World()
    world.listen("one", 1)
    world.doubt()
    world.wait(31)
    world.listen("two", 600)
    assert world.resolve() == JobState.IN_DOUBT
