"""The retry policy."""

from __future__ import annotations

from random import Random

import pytest

from sendonce.domain.engine.outcomes import Deferred
from sendonce.domain.engine.retries import RetryPolicy

POLICY = RetryPolicy(max_tries=6, base=60.0, ceiling=600.0)
PLAIN = Deferred("451", "later")


@pytest.mark.parametrize(("tries", "longest"), [(0, 60), (1, 120), (2, 240), (3, 480), (4, 600)])
def test_waits_grow_twofold_up_to_the_ceiling(tries: int, longest: float) -> None:
    """Each wait is between a half and the whole of its step."""
    waits = [POLICY.after(tries, PLAIN, Random(seed)) for seed in range(200)]
    assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)
    assert len(set(waits)) > 100


def test_the_last_try_is_the_last() -> None:
    """Six tries, counted with this one."""
    assert POLICY.after(4, PLAIN, Random(0)) is not None
    assert POLICY.after(5, PLAIN, Random(0)) is None


def test_the_server_may_name_the_time() -> None:
    """What it asks for is kept, without dice."""
    assert POLICY.after(0, Deferred("451", "greylisted", retry_after=300.0), Random(0)) == 300.0


def test_the_server_cannot_buy_more_tries() -> None:
    """A named time does not make a seventh try."""
    assert POLICY.after(5, Deferred("451", "later", retry_after=1.0), Random(0)) is None


@pytest.mark.parametrize(("told", "wait"), [(7.0, 7.0), (0.0, 0.0), (None, 60.0)])
def test_throttling_uses_up_nothing(told: float | None, wait: float) -> None:
    """However often the account is throttled, its letters do not die of it."""
    throttled = Deferred("429", "too fast", retry_after=told, throttle=True)
    assert POLICY.after(99, throttled, Random(0)) == wait
