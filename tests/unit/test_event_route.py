"""The provider's silence proves something only for a time in which somebody listened without a break."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.engine.event_route import LONGEST_SILENCE, Coverage, Listening, Receiver

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
WHOLE, SO_FAR, BROKEN = Coverage.WHOLE, Coverage.SO_FAR, Coverage.BROKEN


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def push(since: float, seen: float, name: str = "one", *, left: bool = False) -> Receiver:
    return Receiver(name, ago(since), ago(seen), left=left)


def queue(since: float, seen: float) -> Receiver:
    return Receiver("queue", ago(since), ago(seen), durable=True)


@pytest.mark.parametrize(
    ("receivers", "start", "end", "coverage"),
    [
        ([], 60, 30, BROKEN),
        ([push(90, 0)], 60, 30, WHOLE),
        ([push(90, 0)], 91, 30, BROKEN),  # nobody had ever listened
        ([push(90, 0)], 60, -1, SO_FAR),
        ([push(90, 0.1)], 60, 0.05, SO_FAR),  # not noted yet
        ([push(90, 20)], 60, 30, WHOLE),  # away since: what was heard was heard
        ([push(90, 30)], 60, 29, BROKEN),
        ([push(90, 0.3)], 60, -1, BROKEN),  # silent for 18 s
        ([push(90, 40), push(40, 0)], 60, 30, BROKEN),  # an answer of 5xx
        ([push(90, 70), push(69, 0)], 60, 30, WHOLE),  # broken before
        ([push(90, 40), push(20, 0, "two")], 60, 30, BROKEN),
        ([push(90, 0), push(80, 50, "two")], 60, 30, BROKEN),  # one of two was lost
        ([push(90, 0), push(80, 61, "two")], 60, 30, WHOLE),  # lost before
        ([push(90, 0), push(80, 60.1, "two")], 60, 30, BROKEN),  # events may still have gone to it
        ([push(90, 0), push(80, 50, "two", left=True)], 60, 30, WHOLE),
        ([push(90, 50, left=True), push(50, 0, "two")], 60, 30, WHOLE),  # one took over
        ([push(90, 50, left=True), push(49, 0, "two")], 60, 30, BROKEN),  # after a moment without any
        ([push(90, 0), push(50, 0, "two")], 60, 30, WHOLE),  # one came to help
        ([queue(90, 1)], 60, 30, WHOLE),
        ([queue(90, 1)], 91, 30, BROKEN),  # a queue that is made later has no earlier events
        ([queue(90, 40)], 60, 30, SO_FAR),  # they wait in it
        ([queue(90, 40), queue(35, 1)], 60, 30, BROKEN),  # a message in it could not be read
        ([queue(9000, 8000)], 8500, 7000, BROKEN),  # it forgets after some days
        ([queue(90, 1), push(90, 50)], 60, 30, WHOLE),
    ],
)
def test_how_a_span_was_listened_to(
    receivers: list[Receiver], start: float, end: float, coverage: Coverage
) -> None:
    assert Listening(receivers, NOW).covers(ago(start), ago(end)) == coverage


_RECEIVERS = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.sampled_from("ab"), st.booleans()).map(
        lambda row: push(max(row[:2]) / 10, min(row[:2]) / 10, row[2], left=row[3])
    ),
    max_size=5,
)


@given(_RECEIVERS, st.integers(0, 99), st.integers(0, 99))
def test_a_whole_span_has_somebody_listening_in_each_moment_and_nobody_lost(
    receivers: list[Receiver], one: int, other: int
) -> None:
    start, end = ago(max(one, other) / 10), ago(min(one, other) / 10)
    if Listening(receivers, NOW).covers(start, end) is not WHOLE:
        return
    for tenths in range(min(one, other), max(one, other) + 1):
        assert any(each.since <= ago(tenths / 10) <= each.seen for each in receivers)
    for each in receivers:
        lost = not each.left and NOW - each.seen > LONGEST_SILENCE
        assert not (lost and start <= each.seen <= end)
