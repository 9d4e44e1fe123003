"""The provider's silence proves something only for a time in which somebody listened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.event_route import SILENT_AFTER, Receiver, RouteWatch, watch
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
    ("receivers", "stretches"),
    [
        ([receiver(90, 0)], [receiver(90, 0)]),
        ([receiver(90, 9), receiver(10, 0)], [receiver(90, 0)]),  # one took over
        ([receiver(90, 11), receiver(10, 0)], [receiver(90, 11), receiver(10, 0)]),
        ([receiver(0.4, 0), receiver(9, 0.5)], [receiver(9, 0.5), receiver(0.4, 0)]),  # six seconds away
        ([receiver(90, 0), receiver(50, 40)], [receiver(90, 0)]),
        ([receiver(9, 0, durable=True), receiver(8, 0)], [receiver(9, 0)]),
        ([receiver(9, 0, durable=True), receiver(8, 1, durable=True)], [receiver(9, 0, durable=True)]),
    ],
)
def test_receivers_that_overlap_are_one_stretch(receivers: list[Receiver], stretches: list[Receiver]) -> None:
    assert watch(receivers, NOW) == RouteWatch(tuple(stretches))


@pytest.mark.parametrize("receivers", [[], [receiver(90, 3)]])
def test_nobody_receives(receivers: list[Receiver]) -> None:
    assert watch(receivers, NOW) is None


_RECEIVERS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 200)).map(
        lambda ends: receiver(max(ends) / 10, min(ends) / 10)
    ),
    max_size=6,
)


@given(_RECEIVERS)
def test_in_every_moment_of_the_stretches_somebody_received_and_in_no_other(
    receivers: list[Receiver],
) -> None:
    found = watch(receivers, NOW)
    if found is None:
        assert all(NOW - each.seen > SILENT_AFTER for each in receivers)
        return
    for tenths in range(201):
        moment = ago(tenths / 10)
        inside = any(each.since <= moment <= each.seen for each in found.stretches)
        assert inside == any(each.since <= moment <= each.seen for each in receivers)


PATIENCE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("receivers", "claimed", "missed"),
    [
        ([receiver(90, 0)], 60, False),
        ([receiver(90, 0)], 91, True),  # nobody had ever received
        ([receiver(90, 0, durable=True)], 91, True),  # and a queue that is made later has no earlier events
        ([receiver(90, 11), receiver(10, 0)], 60, False),  # the provider has tried again
        ([receiver(90, 12), receiver(10, 0)], 60, True),
        ([receiver(90, 12), receiver(10, 0)], 10, False),  # claimed since
        ([receiver(90, 60), receiver(50, 10.2), receiver(10, 0)], 70, True),  # the long break is not the last
        ([receiver(90, 60.6), receiver(60, 30.6), receiver(30, 0)], 70, True),  # together they are too long
        ([receiver(90, 60, durable=True), receiver(50, 0, durable=True)], 70, False),
        ([receiver(9000, 8000, durable=True), receiver(50, 0, durable=True)], 8500, True),  # 5 days
        ([receiver(90, 60), receiver(50, 0, durable=True)], 70, True),  # pushed in vain, then queued
    ],
)
def test_what_breaks_may_have_lost(receivers: list[Receiver], claimed: float, missed: bool) -> None:
    found = watch(receivers, NOW)
    assert found is not None
    assert found.may_have_missed(ago(claimed), PATIENCE) == missed


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
        policy = DoubtPolicy(QUIET, timedelta(minutes=28), timedelta(minutes=20), "news@example.com")
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
    world.listen("two", 60)
    world.wait(0.1)
    world.listen("three", 60)  # a short break does not hide the long one
    assert world.resolve() == JobState.IN_DOUBT


def test_doubts_that_wait_for_a_person_do_not_hide_those_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sendonce.flows.resolve_doubts.MOST_AT_ONCE", 1)
    world = World()
    world.doubt()  # before anybody received
    first = world.job
    world.listen("one", 1)
    world.doubt()
    world.listen("one", 32)
    assert world.resolve() == JobState.SCHEDULED
    assert world.stage.state(first) == JobState.IN_DOUBT
