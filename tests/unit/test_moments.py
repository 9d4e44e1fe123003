"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sendonce.domain.engine.moments import read_moment, shown_moment
from sendonce.errors import BadInput

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-12-01 09:00", "2026-12-01T08:00"),
        ("2026-07-01 09:00", "2026-07-01T07:00"),
        (" 2026-12-01T09:00:30 ", "2026-12-01T08:00:30"),
        ("2026-12-01T09:00Z", "2026-12-01T09:00"),
        ("2026-12-01 09:00 +05:30", "2026-12-01T03:30"),
        ("2026-12-01T09:00-0800", "2026-12-01T17:00"),
    ],
)
def test_a_time_is_on_the_zones_clock_unless_it_has_an_offset(text: str, utc: str) -> None:
    """Summer and winter are told apart."""
    read = read_moment(text, BERLIN)
    assert (read.at, read.note) == (datetime.fromisoformat(utc).replace(tzinfo=UTC), None)


def test_a_missing_hour_is_moved_and_said() -> None:
    """Clocks go from 02:00 to 03:00: half past two is half past three."""
    read = read_moment("2026-03-29 02:30", BERLIN)
    assert read.at == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert read.note == (
        "2026-03-29 02:30 does not exist in Europe/Berlin, where clocks go forward: taken as 03:30."
    )


def test_an_hour_that_comes_twice_is_the_first_and_said() -> None:
    """The note tells how to write the second, and that is understood."""
    read = read_moment("2026-10-25 02:30", BERLIN)
    assert read.at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert read.note is not None
    second = read.note.partition("second write ")[2].removesuffix(".")
    assert read_moment(second, BERLIN).at == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


NO_TIMES = ["", "tomorrow", "2026-12-01", "09:00", "2026-13-01 09:00", "2026-02-30 09:00", "2026-12-01 25:00"]
NO_TIMES += [
    "01.12.2026 09:00",
    "2026-12-01 09:00 MSK",
    "2026-12-01 09:00+99:99",
    "٢٠٢٦-12-01 09:00",
    "9" * 9999,
]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_refused(text: str) -> None:
    """With an example of how to write one, whatever it is."""
    with pytest.raises(BadInput, match="2026-12-01 09:00"):
        read_moment(text, BERLIN)


def test_a_time_is_shown_on_the_zones_clock() -> None:
    """With the zone, because the reader's own may be another."""
    at = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
    assert shown_moment(at, BERLIN) == "2026-12-01 09:00 (Europe/Berlin)"
