"""Rotation of senders: proportions, evenness, and who is left out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.campaigns.rotation import Candidate, Record, Rotation, reputation

PICKS = 10_000


def picks(candidates: list[Candidate], number: int = PICKS) -> list[str]:
    rotation = Rotation()
    return [rotation.pick(candidates) or "" for _ in range(number)]


def test_picks_follow_the_weights() -> None:
    pool = [
        Candidate("a", "one.example", 50),
        Candidate("b", "one.example", 50, 0.5),
        Candidate("c", "two.example", 25),
    ]
    counted = Counter(picks(pool))
    assert {name: round(share / PICKS, 3) for name, share in counted.items()} == {
        "a": 0.5,
        "b": 0.25,
        "c": 0.25,
    }


def test_picks_are_spread_and_never_come_in_a_row() -> None:
    order = picks([Candidate("a", "x.example", 2), Candidate("b", "y.example", 1)], 9)
    assert order == ["a", "b", "a"] * 3


def test_domains_take_turns_however_many_mailboxes_they_have() -> None:
    pool = [Candidate(f"a{n}", "one.example", 10) for n in range(3)] + [Candidate("b", "two.example", 30)]
    order = [name[0] for name in picks(pool, 100)]
    assert all(first != second for first, second in pairwise(order))


def test_who_may_send_nothing_today_is_not_asked() -> None:
    assert set(picks([Candidate("a", "x.example", 0), Candidate("b", "x.example", 3)], 50)) == {"b"}
    assert Rotation().pick([Candidate("a", "x.example", 0)]) is None


def test_standing_survives_a_restart() -> None:
    pool = [Candidate("a", "x.example", 3), Candidate("b", "y.example", 2), Candidate("c", "z.example", 1)]
    whole = picks(pool, 60)
    first = Rotation()
    before = [first.pick(pool) for _ in range(31)]
    second = Rotation(dict(first.credits))
    assert before + [second.pick(pool) for _ in range(29)] == whole


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Record(), 1.0),
        (Record(letters=950, bounces=20), 0.84),
        (Record(letters=150, complaints=1), 0.05),
        (Record(letters=50, deferrals=10), 0.8),
    ],
)
def test_reputation_tells_troubles_apart(record: Record, expected: float) -> None:
    assert reputation(record) == pytest.approx(expected)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_over_a_cycle_shares_are_exact(weights: list[int]) -> None:
    pool = [Candidate(str(n), f"{n}.example", weight) for n, weight in enumerate(weights)]
    assert Counter(picks(pool, sum(weights))) == {str(n): weight for n, weight in enumerate(weights)}
