"""Clocks that jump: nothing is claimed by one until a second clock agrees."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from sendonce.adapters.stores.memory import MemoryStore
from sendonce.domain.engine.clocks import TOLERANCE, ClockGuard
from sendonce.errors import Unavailable
from sendonce.flows.engine.keep_time import TimeKeeper

HOUR = timedelta(hours=1)


def test_drift_is_followed_and_a_jump_is_not() -> None:
    guard = ClockGuard(1000.0, 0.0)
    for second in range(1, 1000):
        assert guard.observe(1000.0 + second * 1.2, float(second))
    assert not guard.observe(1000.0 + 999 * 1.2 + TOLERANCE + 1, 999.0)
    assert not guard.observe(1000.0 + 999 * 1.2 + TOLERANCE + 2, 1000.0)
    assert guard.observe(1000.0 + 1001 * 1.2, 1001.0)


def test_a_clock_that_was_set_back_is_watched_from_there() -> None:
    """Two minutes back, then two minutes ahead: the second is a jump like any other."""
    guard = ClockGuard(1000.0, 0.0)
    assert guard.observe(881.0, 1.0)
    assert not guard.observe(1002.0, 2.0)


def test_a_second_clock_that_agrees_makes_the_new_time_right() -> None:
    guard = ClockGuard(1000.0, 0.0)
    assert not guard.observe(5000.0, 1.0)
    assert not guard.confirm(5000.0, 1.0, second_clock=1001.0)
    assert not guard.trusted
    assert guard.confirm(5000.0, 1.0, second_clock=5030.0)
    assert guard.observe(5001.0, 2.0)


class Provider:
    """A second clock that is ``ahead`` of ours, or away."""

    def __init__(self, ahead: timedelta | None) -> None:
        self._ahead = ahead

    async def server_time(self) -> datetime:
        if self._ahead is None:
            raise Unavailable("away")
        return datetime.now(UTC) + self._ahead


class Times:
    """A store whose clock can be moved, and the keeper that watches it."""

    def __init__(self, provider: Provider | None = None, ahead: timedelta = timedelta()) -> None:
        self.store = MemoryStore()
        self.ahead = ahead
        self.store.state.clock = lambda: datetime.now(UTC) + self.ahead
        self.keeper = TimeKeeper(self.store.ledger, provider, quiet=timedelta(seconds=30))
        self.keeper.open()

    def jump(self, ahead: timedelta) -> None:
        self.ahead = ahead
        self.keeper.note(self.store.ledger.now())

    def mind(self) -> bool:
        asyncio.run(self.keeper.mind())
        return self.keeper.may_claim()


@pytest.mark.parametrize("provider", [None, Provider(timedelta()), Provider(None)])
def test_the_stores_clock_is_guarded_like_our_own(provider: Provider | None) -> None:
    """It jumped, and no second clock agrees: nothing is claimed until it is back."""
    times = Times(provider)
    assert times.keeper.may_claim()
    assert times.keeper.claim_not_after() < datetime.now(UTC) + HOUR
    times.jump(HOUR)
    assert not times.keeper.may_claim()
    assert not times.mind()
    assert not times.keeper.may_prove_absence
    times.ahead = timedelta()
    assert times.mind()
    assert not times.keeper.may_prove_absence, "the quiet time of doubts starts again"


@pytest.mark.parametrize("provider", [None, Provider(timedelta()), Provider(None)])
def test_who_starts_after_the_stores_clock_has_jumped_sees_that_two_clocks_differ(
    provider: Provider | None,
) -> None:
    """A tick, or a worker that was restarted, knows nothing of the time before."""
    times = Times(provider, HOUR)
    assert not times.keeper.may_start()
    assert times.keeper.claim_not_after() < times.store.ledger.now()
    assert not times.mind()
    assert not times.keeper.may_prove_absence
    times.ahead = timedelta()
    assert times.mind()


def test_a_provider_that_confirms_the_store_lets_a_start_go_on() -> None:
    """This machine's own clock is an hour late."""
    times = Times(Provider(HOUR), HOUR)
    assert times.mind()


@pytest.mark.parametrize("minutes", [-60, -9, 9])
def test_clocks_that_differ_a_little_or_are_late_hold_up_nobody(minutes: int) -> None:
    times = Times(ahead=timedelta(minutes=minutes))
    assert times.keeper.may_start()
    assert times.mind()


def test_a_provider_that_agrees_lets_claims_go_on() -> None:
    """The store's clock was wrong before, and is right now."""
    times = Times(Provider(HOUR))
    times.jump(HOUR)
    assert times.mind()
    assert times.keeper.claim_not_after() > datetime.now(UTC) + HOUR


def test_a_clock_that_runs_as_it_should_is_left_alone() -> None:
    times = Times()
    assert times.mind()
    assert times.keeper.may_prove_absence
