"""The sample is large enough for what it is to show, and the same for the same seed."""

from __future__ import annotations

import pytest

from sendonce.domain.prospecting.audits import (
    SAMPLE,
    TARGET,
    Listed,
    count_repeated,
    draw,
    repeats,
    upper_bound,
)


def listed(number: int, email: str, *, freemail: bool = False) -> Listed:
    return Listed(f"{number:04}", f"d{number}.ru", email, freemail)


def test_none_in_the_usual_sample_shows_the_target() -> None:
    """The rule of three; one more found, or a sample a little smaller, does not show it."""
    assert upper_bound(0, SAMPLE) <= TARGET
    assert upper_bound(1, SAMPLE) > TARGET
    assert upper_bound(0, SAMPLE - 10) > TARGET


@pytest.mark.parametrize(("found", "sampled", "bound"), [(0, 10, 0.2589), (2, 100, 0.0616), (5, 5, 1.0)])
def test_the_bound_is_that_of_the_tables(found: int, sampled: int, bound: float) -> None:
    assert upper_bound(found, sampled) == pytest.approx(bound, abs=1e-4)


def test_a_domain_repeats_but_a_free_provider_does_not() -> None:
    shared = repeats(
        [
            listed(1, "info@firma.ru"),
            listed(2, "sales@firma.ru"),
            listed(3, "one@mail.ru", freemail=True),
            listed(4, "two@mail.ru", freemail=True),
            listed(5, "two@mail.ru", freemail=True),
        ]
    )
    assert sorted(shared) == ["firma.ru", "two@mail.ru"]
    assert count_repeated(shared) == 2


def test_a_seed_draws_the_same_sample() -> None:
    everybody = [listed(number, f"a@d{number}.ru") for number in range(50)]
    assert draw(everybody, 10, 7) == draw(everybody, 10, 7)
    assert draw(everybody, 10, 7) != draw(everybody, 10, 8)
    assert draw(everybody, 99, 7) == everybody
