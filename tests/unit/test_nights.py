"""The night window: searches are submitted inside it, by the clock on the wall, and at no other time."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sendonce.domain.prospecting.nights import MARGIN, SHORTEST, Hours, NightWindow, read_hours

MOSCOW = NightWindow(read_hours("00:00-07:59"), ZoneInfo("Europe/Moscow"))
# Clocks are turned at 1, 2, 3 and 24 o'clock, by an hour and by half of one.
ZONES = ["Europe/Moscow", "Europe/Riga", "America/New_York", "Australia/Lord_Howe", "America/Havana", "UTC"]


def moscow(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 11, 16, hour, minute, second, tzinfo=ZoneInfo("Europe/Moscow"))


def test_it_is_open_from_midnight_until_shortly_before_eight() -> None:
    assert MOSCOW.closes_at(moscow(0)) == moscow(8) - MARGIN
    assert MOSCOW.closes_at(moscow(7, 54, 59)) is not None
    assert MOSCOW.closes_at(moscow(7, 55)) is None
    assert MOSCOW.closes_at(moscow(12)) is None
    assert MOSCOW.opens_at(moscow(12)) == moscow(0) + timedelta(days=1)
    assert MOSCOW.opens_at(moscow(3)) == moscow(3)


def test_it_may_go_over_midnight() -> None:
    window = NightWindow(read_hours("22:30-05:59"), ZoneInfo("Europe/Moscow"))
    assert window.closes_at(moscow(23)) == moscow(6) + timedelta(days=1) - MARGIN
    assert window.closes_at(moscow(2)) == moscow(6) - MARGIN
    assert window.opens_at(moscow(12)) == moscow(22, 30)


def test_a_whole_day_never_closes() -> None:
    window = NightWindow(read_hours("00:00-23:59"), ZoneInfo("Europe/Moscow"))
    assert window.closes_at(moscow(23, 59, 59)) is not None


@pytest.mark.parametrize("text", ["", "0-8", "00:00", "24:00-08:00", "00:00-08:60", "00:00-00:10"])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_hours(text)


def minutes_of(clock: time) -> int:
    return clock.hour * 60 + clock.minute


@given(
    st.sampled_from(ZONES),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31)),
)
def test_the_clock_on_the_wall_is_inside_whenever_it_is_open(
    zone: str, first: time, last: time, moment: datetime
) -> None:
    """Also on the nights when clocks are turned; and it opens again, within two days."""
    window = NightWindow(Hours(first, last), ZoneInfo(zone))
    assume(window.never_closes or window.hours.minutes >= SHORTEST)
    now = moment.replace(tzinfo=UTC)
    opens = window.opens_at(now)
    assert now <= opens <= now + timedelta(days=3)
    closes = window.closes_at(opens)
    assert closes is not None
    if window.never_closes:
        return
    for at in (opens, opens + (closes - opens) / 2, closes - timedelta(seconds=1)):
        wall = at.astimezone(window.zone)
        assert (minutes_of(wall.time()) - minutes_of(first)) % (24 * 60) < window.hours.minutes
    assert window.closes_at(closes) is None


RIGA = ZoneInfo("Europe/Riga")


def utc(day: int, hour: int, minute: int, month: int = 10) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def test_a_time_that_comes_twice_opens_at_the_second_and_closes_at_the_first() -> None:
    """In Riga the hour from three to four comes twice on 25 October 2026: from 00:00 and from 01:00 UTC."""
    opening = NightWindow(read_hours("03:30-06:59"), RIGA)
    assert opening.opens_at(utc(24, 23, 0)) == utc(25, 1, 30)
    closing = NightWindow(read_hours("01:00-03:29"), RIGA)
    assert closing.closes_at(utc(24, 23, 0)) == utc(25, 0, 30) - MARGIN


def test_a_time_that_is_missing_opens_late_and_closes_early() -> None:
    """In Riga the hour from three to four is missing on 29 March 2026: at 01:00 UTC clocks go forward."""
    opening = NightWindow(read_hours("03:30-06:59"), RIGA)
    assert opening.opens_at(utc(28, 23, 0, month=3)) == utc(29, 1, 30, month=3)
    closing = NightWindow(read_hours("01:00-03:29"), RIGA)
    assert closing.closes_at(utc(28, 23, 0, month=3)) == utc(29, 0, 30, month=3) - MARGIN
