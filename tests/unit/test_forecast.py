"""Forecasts of campaigns, and what letters cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.campaigns.costs import estimate, read_prices
from sendonce.domain.campaigns.forecast import Binding, Cap, forecast
from sendonce.domain.campaigns.pools import SenderLimits
from sendonce.domain.campaigns.windows import Window
from sendonce.errors import BadInput
from sendonce.wiring.campaigns import unit_prices

MONDAY = date(2026, 11, 16)
DAY = timedelta(days=1)


def sender(daily: int = 50, per_hour: int | None = None, ramp: tuple[int, ...] = ()) -> SenderLimits:
    return SenderLimits("s", "acme", "pumps", daily, per_hour, ramp)


def test_the_daily_limit_and_the_weekend_are_counted() -> None:
    told = forecast(300, [timedelta()], [sender(50)], Window(), MONDAY)
    assert (told.ends, told.binding) == (date(2026, 11, 23), Binding.DAILY)
    assert sum(letters for _, letters in told.days) == 300


def test_a_warm_up_binds_at_first() -> None:
    told = forecast(30, [timedelta()], [sender(50, ramp=(2, 4, 8, 16))], Window(), MONDAY)
    assert told.binding == Binding.WARM_UP
    assert [letters for _, letters in told.days] == [2, 4, 8, 16]


def test_what_senders_share_binds() -> None:
    """Of two senders with fifty each, that of an account of thirty sends thirty; a tenant of ten, ten."""
    pool = [sender(50), replace(sender(50), sender_id="other")]
    account = Cap(frozenset({"s"}), 30, Binding.ACCOUNT)
    told = forecast(80, [timedelta()], pool, Window(), MONDAY, [account])
    assert (told.days[0], told.binding) == ((MONDAY, 80), Binding.ACCOUNT)
    tenant = Cap(frozenset({"s", "other"}), 10, Binding.TENANT)
    told = forecast(80, [timedelta()], pool, Window(), MONDAY, [account, tenant])
    assert (told.days[0], told.binding) == ((MONDAY, 10), Binding.TENANT)


def test_an_hourly_limit_binds() -> None:
    assert (
        forecast(1000, [timedelta()], [sender(500, per_hour=10)], Window(), MONDAY).binding == Binding.HOURLY
    )


def test_follow_ups_wait() -> None:
    told = forecast(5, [timedelta(), 3 * DAY], [sender()], Window(), MONDAY)
    assert told.days == ((MONDAY, 5), (MONDAY + 3 * DAY, 5))


def test_without_senders_it_never_ends() -> None:
    told = forecast(5, [timedelta()], [], Window(), MONDAY)
    assert (told.ends, told.binding) == (None, Binding.SENDERS)


@given(st.integers(0, 500), st.integers(1, 3), st.integers(1, 80))
def test_all_letters_are_in_it(leads: int, steps: int, daily: int) -> None:
    told = forecast(leads, [n * DAY for n in range(steps)], [sender(daily)], Window(), MONDAY)
    assert sum(letters for _, letters in told.days) == told.letters == leads * steps
    assert all(letters <= daily and day.weekday() < 5 for day, letters in told.days)


def test_costs_have_a_total_for_each_volume() -> None:
    totals = {cost.letters_per_month: cost.usd for cost in estimate(unit_prices()) if cost.service == "total"}
    assert set(totals) == {10_000, 100_000, 1_000_000}
    assert totals[10_000] < 100
    assert totals[1_000_000] > totals[100_000] > totals[10_000]


def test_a_table_of_prices_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_prices(["service,per_letter,per_month,letters_free,assumption", "X,free,0,0,"])
