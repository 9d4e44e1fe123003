"""Sliding windows: no span of time ever sees more than its limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.prospecting.quotas import PERMIT_LIFE, Limit, WindowUse, permit
from sendonce.domain.prospecting.searches import Budget
from tests.conformance.search_stage import NOW

LIMITS = (Limit(10, 1.0), Limit(25, 5.0))


def test_what_is_left_of_the_tightest_limit_is_granted() -> None:
    given_ = permit(8, [WindowUse(LIMITS[0], 4, 0.5), WindowUse(LIMITS[1], 22, 4.0)])
    assert given_.granted == 3
    assert given_.wait == 5.0 + PERMIT_LIFE - 4.0
    assert permit(3, [WindowUse(LIMITS[0], 4, 0.5)]).wait == 0.0


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 30), st.floats(0, PERMIT_LIFE)), max_size=60))
def test_no_window_at_the_provider_sees_more_than_its_limit(
    asked: list[tuple[float, int, float]],
) -> None:
    """However late within its life a permit is used."""
    now, uses, seen = 0.0, list[tuple[float, int]](), list[float]()
    for pause, wanted, delay in asked:
        now += pause
        windows = []
        for limit in LIMITS:
            inside = [(at, count) for at, count in uses if at > now - limit.span]
            oldest = now - min((at for at, _ in inside), default=now)
            windows.append(WindowUse(limit, sum(count for _, count in inside), oldest))
        granted = permit(wanted, windows).granted
        if granted:
            uses.append((now, granted))
            seen += [now + delay] * granted
    for limit in LIMITS:
        for start in seen:
            assert sum(start <= at < start + limit.seconds for at in seen) <= limit.count


def test_a_budget_affords_whole_submissions() -> None:
    budget = Budget(NOW, 0.02541, 1.0)
    assert budget.affords(0.0) == 39
    assert budget.affords(0.999) == 0
    assert budget.affords(2.0) == 0
    assert Budget(NOW, 0.02541, 0.0).affords(100.0) is None


@given(st.integers(0, 5_000))
def test_rounding_never_stops_the_last_submission(submissions: int) -> None:
    price = 0.02541
    spent = sum([price] * submissions)
    assert Budget(NOW, price, price * (submissions + 1)).affords(spent) == 1
