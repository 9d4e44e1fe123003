"""Time-ordered ids."""

from __future__ import annotations

import sys
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.engine.ids import time_ordered_id, time_ordered_ids
from sendonce.entrypoints.cli.output import short_ids

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


def test_short_ids_on_a_screen_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of one millisecond begin alike: they are cut behind where they differ. A pipe gets them whole."""
    ids = time_ordered_ids(3, NOW_MS)
    assert list(short_ids(ids).values()) == ids
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = short_ids(ids)
    assert len(set(shown.values())) == 3
    assert all(whole.startswith(short) and len(short) < len(whole) for whole, short in shown.items())
    assert list(short_ids(ids[:1]).values()) == [ids[0][:13]]
