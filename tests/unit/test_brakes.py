"""Brakes: how often they stop what is well, and how soon what is not. Simulated, with fixed seeds."""

from __future__ import annotations

import random
from datetime import timedelta
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.campaigns.brakes import (
    Limits,
    Rule,
    binomial_up_to,
    bounce_brake,
    complaint_brake,
    deferral_brake,
    next_pace,
)
from sendonce.errors import BadInput

LIMITS = Limits()


def stopped_after(share: float, letters: int, chance: random.Random) -> int | None:
    """The letter at which the brake of bounces stops a campaign whose addresses bounce with this share."""
    bounces = 0
    for sent in range(1, letters + 1):
        bounces += chance.random() < share
        if bounce_brake(bounces, sent, LIMITS).tripped:
            return sent
    return None


def stops(share: float, campaigns: int = 400, letters: int = 1000) -> list[int | None]:
    chance = random.Random(f"bounces of {share}")
    return [stopped_after(share, letters, chance) for _ in range(campaigns)]


@pytest.mark.parametrize(("share", "at_most"), [(0.01, 0.0), (0.02, 0.005), (0.03, 0.01)])
def test_a_healthy_list_is_not_stopped_by_chance(share: float, at_most: float) -> None:
    ends = stops(share)
    assert sum(end is not None for end in ends) / len(ends) <= at_most


@pytest.mark.parametrize(("share", "soon"), [(0.10, 140), (0.20, 40), (0.50, 12)])
def test_a_bad_list_is_stopped_soon(share: float, soon: int) -> None:
    ends = stops(share)
    assert None not in ends
    assert median(end for end in ends if end is not None) <= soon


def test_a_few_bounces_at_the_very_start_stop_nothing() -> None:
    """Two of the first three may be chance; a share alone would have stopped the campaign."""
    assert not bounce_brake(2, 3, LIMITS).tripped


def test_one_complaint_does_not_block_a_sender_and_two_do() -> None:
    assert not complaint_brake(1, 1, LIMITS).tripped
    assert complaint_brake(2, 1000, LIMITS).tripped
    assert not complaint_brake(2, 2000, LIMITS).tripped


def test_few_healthy_senders_are_blocked_by_chance() -> None:
    chance = random.Random("complaints")
    healthy, trials = 0.0002, 2000
    blocked = sum(
        complaint_brake(sum(chance.random() < healthy for _ in range(1000)), 1000, LIMITS).tripped
        for _ in range(trials // 10)
    )
    assert blocked / (trials / 10) <= 0.02


def test_a_rise_of_deferrals_halves_the_rate_which_recovers_slowly() -> None:
    assert deferral_brake(20, 60, LIMITS).tripped
    assert not deferral_brake(6, 60, LIMITS).tripped
    hour = timedelta(hours=1)
    assert next_pace(1.0, hour, slower=True) == 0.5
    assert next_pace(0.5, timedelta(minutes=59), slower=True) == 0.5
    assert next_pace(0.02, hour, slower=True) == 1 / 64
    assert next_pace(0.5, hour, slower=False) == pytest.approx(0.6)
    assert next_pace(0.95, hour, slower=False) == 1.0


def test_a_reason_has_its_numbers() -> None:
    assert bounce_brake(12, 80, LIMITS).reason() == (
        "12 of the last 80 letters bounced (15.0%; the limit is 5.0% of 1000)."
    )


def test_a_campaign_may_only_tighten() -> None:
    asked = Limits(bounce=0.02, complaint=0.01)
    assert LIMITS.tightened(asked).bounce == 0.02
    assert LIMITS.tightened(asked).complaint == LIMITS.complaint


@pytest.mark.parametrize("wrong", [{"bounce": 0.0}, {"complaint": 1.5}, {"deferral_window": 0}])
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=r"brake (bounce|complaint|deferral)"):
        Limits(**wrong)  # type: ignore[arg-type]


@given(st.integers(0, 60), st.integers(1, 200), st.floats(0.001, 0.5))
def test_the_probability_is_one(count: int, trials: int, share: float) -> None:
    """Between 0 and 1, and it grows with the count."""
    here = binomial_up_to(count, trials, share)
    assert 0 <= here <= 1
    assert here <= binomial_up_to(count + 1, trials, share) + 1e-9


@given(st.integers(0, 40), st.integers(40, 300))
def test_more_bounces_never_release_the_brake(bounces: int, letters: int) -> None:
    if bounce_brake(bounces, letters, LIMITS).tripped:
        assert bounce_brake(bounces + 1, letters, LIMITS).tripped


def test_every_rule_has_its_limit() -> None:
    assert {rule.value for rule in Rule} == {"bounce", "complaint", "deferral"}
