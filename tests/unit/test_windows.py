"""Windows of sending, and the ramps of new senders."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.campaigns.warm_up import MAILBOX_RAMP, allowed_today, parse_ramp
from sendonce.domain.campaigns.windows import Window, parse_days, parse_hour, parse_zone
from sendonce.errors import BadInput

MOSCOW, BERLIN = ZoneInfo("Europe/Moscow"), ZoneInfo("Europe/Berlin")
WEEKDAYS = Window()


def test_a_letter_waits_for_monday_morning() -> None:
    friday_evening = datetime(2026, 11, 13, 19, tzinfo=MOSCOW)
    assert WEEKDAYS.next_open(friday_evening, MOSCOW) == datetime(2026, 11, 16, 9, tzinfo=MOSCOW)


def test_inside_the_window_it_need_not_wait() -> None:
    noon = datetime(2026, 11, 16, 12, tzinfo=MOSCOW)
    assert WEEKDAYS.next_open(noon, MOSCOW) == noon
    assert WEEKDAYS.is_open(noon, MOSCOW)
    assert not WEEKDAYS.is_open(noon.replace(hour=18), MOSCOW)


def test_the_recipients_clock_counts() -> None:
    """Nine in Vladivostok is two at night in Moscow."""
    start = datetime(2026, 11, 15, 12, tzinfo=UTC)
    opens = WEEKDAYS.next_open(start, ZoneInfo("Asia/Vladivostok"))
    assert opens.astimezone(MOSCOW) == datetime(2026, 11, 16, 2, tzinfo=MOSCOW)


def test_holidays_are_left_out() -> None:
    window = Window(holidays=frozenset({date(2026, 11, 16)}))
    sunday = datetime(2026, 11, 15, 12, tzinfo=MOSCOW)
    assert window.next_open(sunday, MOSCOW) == datetime(2026, 11, 17, 9, tzinfo=MOSCOW)


def test_clocks_that_go_forward_open_it_when_they_have() -> None:
    night = Window(days=frozenset({6}), opens=time(2, 30), closes=time(4))
    saturday = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    opening = next(night.openings(saturday.astimezone(UTC), BERLIN))
    assert opening.start == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert opening.end == datetime(2026, 3, 29, 2, tzinfo=UTC)


def test_a_window_that_never_opens_is_refused() -> None:
    empty = Window(opens=time(12), closes=time(12))
    with pytest.raises(BadInput, match="never opens"):
        empty.next_open(datetime(2026, 11, 15, tzinfo=UTC), MOSCOW)


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),
    st.sampled_from(["Europe/Berlin", "Asia/Tokyo", "America/New_York", "Europe/Moscow"]),
)
def test_what_is_called_open_is_inside_the_hours(moment: datetime, zone_name: str) -> None:
    zone = ZoneInfo(zone_name)
    opens = WEEKDAYS.next_open(moment, zone)
    wall = opens.astimezone(zone)
    assert opens >= moment
    assert WEEKDAYS.is_open(opens, zone)
    assert wall.weekday() < 5
    assert time(9) <= wall.time() < time(18)
    assert opens - moment <= timedelta(days=3, hours=1)


@pytest.mark.parametrize(
    ("parse", "wrong", "says"),
    [
        (parse_days, ["monday"], "There is no day 'monday'"),
        (parse_days, [], "days is a list"),
        (parse_hour, "nine", "written \"09:00\", not 'nine'"),
        (parse_zone, "Europe/Kazan", "no time zone 'Europe/Kazan'"),
        (parse_zone, "../etc/passwd", "no time zone"),
    ],
)
def test_bad_words_are_refused_with_the_fix(parse: object, wrong: object, says: str) -> None:
    assert callable(parse)
    with pytest.raises(BadInput, match=says):
        parse(wrong)


def test_a_ramp_ends_in_the_daily_limit() -> None:
    assert allowed_today(50, MAILBOX_RAMP, 0) == 5
    assert allowed_today(50, MAILBOX_RAMP, 13) == 36
    assert allowed_today(50, MAILBOX_RAMP, len(MAILBOX_RAMP)) == 50
    assert allowed_today(3, MAILBOX_RAMP, 0) == 3


def test_a_ramp_of_ones_own() -> None:
    assert parse_ramp("5, 10,20") == (5, 10, 20)
    for wrong in ("5,x", "0,5", ""):
        with pytest.raises(BadInput):
            parse_ramp(wrong)
