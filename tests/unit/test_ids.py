"""Time-ordered ids."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.ids import time_ordered_id, time_ordered_ids

NOW_MS = 1_763_000_000_000


@given(count=st.integers(1, 300), unix_ms=st.integers(0, 2**48 - 1))
def test_ids_are_uuids_of_version_7(count: int, unix_ms: int) -> None:
    """Version, variant and time stand where RFC 9562 has them, and the spelling is the usual one."""
    for text in time_ordered_ids(count, unix_ms):
        uuid = UUID(text)
        assert str(uuid) == text
        assert (uuid.version, uuid.variant) == (7, "specified in RFC 4122")
        assert uuid.int >> 80 == unix_ms


def test_ids_of_one_call_rise() -> None:
    """In the order of the list, also past the 14 bits of the counter's lower half."""
    ids = time_ordered_ids(40_000, NOW_MS)
    assert ids == sorted(ids)
    assert len(set(ids)) == 40_000


def test_ids_of_a_later_millisecond_are_greater() -> None:
    """However many were made before."""
    assert time_ordered_ids(20_000, NOW_MS)[-1] < time_ordered_id(NOW_MS + 1)


def test_ids_of_two_calls_differ() -> None:
    """The tail is random."""
    assert not set(time_ordered_ids(1000, NOW_MS)) & set(time_ordered_ids(1000, NOW_MS))


def test_no_ids() -> None:
    """None asked for, none made."""
    assert time_ordered_ids(0, NOW_MS) == []
