"""Letters leave in working hours, spread, and never more than the limit in any 24 hours."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.prospecting.send_slots import DAY, WorkingHours, keeps_limit, slots_for

MOSCOW = WorkingHours(time(9), time(18), ZoneInfo("Europe/Moscow"))
MONDAY = datetime(2026, 3, 2, 6, tzinfo=UTC)  # nine in Moscow
IDS = [f"letter-{number}" for number in range(300)]


@given(
    now=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(lambda it: it.replace(tzinfo=UTC)),
    limit=st.integers(1, 120),
    before=st.lists(st.integers(-48 * 60, 24 * 60), max_size=40),
    count=st.integers(0, 300),
)
def test_the_limit_holds_in_every_stretch_of_a_day(
    now: datetime, limit: int, before: list[int], count: int
) -> None:
    taken = sorted(now + timedelta(minutes=minutes) for minutes in before)[-limit:]
    slots = slots_for(IDS[:count], taken, now, MOSCOW, limit)
    given_times = list(slots.values())
    assert given_times == sorted(given_times)
    for slot in given_times:
        assert now <= slot <= now + DAY
        local = slot.astimezone(MOSCOW.zone)
        assert time(9) <= local.time() < time(18)
        assert local.weekday() < 5
        everything = taken + given_times
        assert sum(slot - DAY < other <= slot for other in everything) <= limit
        assert keeps_limit(slot, [other for other in everything if other is not slot], limit)


def test_a_days_letters_are_spread_over_the_day() -> None:
    slots = list(slots_for(IDS, [], MONDAY, MOSCOW, 100).values())
    gaps = [later - earlier for earlier, later in pairwise(slots)]
    assert 85 <= len(slots) <= 100
    assert timedelta(minutes=3) < min(gaps) < timedelta(minutes=5)
    assert len({gap.seconds for gap in gaps[:50]}) > 40


def test_the_same_letters_get_the_same_slots() -> None:
    first = slots_for(IDS[:20], [], MONDAY, MOSCOW, 100)
    assert slots_for(IDS[:20], [], MONDAY, MOSCOW, 100) == first


@pytest.mark.parametrize(
    ("now", "first"),
    [
        (MONDAY - timedelta(hours=3), MONDAY),
        (MONDAY + timedelta(hours=12), MONDAY + timedelta(days=1)),
        (MONDAY - timedelta(days=1), MONDAY),  # Sunday
    ],
)
def test_nobody_is_written_to_at_night_or_on_a_sunday(now: datetime, first: datetime) -> None:
    (slot,) = slots_for(["a"], [], now, MOSCOW, 1).values()
    assert slot - first < timedelta(hours=9)
    assert slot >= first


def test_nothing_is_planned_further_than_a_day_ahead() -> None:
    friday_night = MONDAY + timedelta(days=4, hours=12)
    assert slots_for(IDS, [], friday_night, MOSCOW, 100) == {}
    assert slots_for(IDS, [], MONDAY, MOSCOW, 0) == {}
