"""Tenants share the letters of an account by their weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.domain.campaigns.accounts import Claim, fair_shares, parse_account_limits
from sendonce.errors import BadInput

CLAIMS = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(Claim, st.integers(1, 20), st.integers(0, 500)), min_size=1
)


def test_all_who_want_much_get_by_weight() -> None:
    claims = {"a": Claim(3, 900), "b": Claim(2, 900), "c": Claim(1, 900)}
    assert fair_shares(600, claims) == {"a": 300, "b": 200, "c": 100}


def test_what_one_does_not_want_the_others_share_by_weight() -> None:
    claims = {"a": Claim(3, 30), "b": Claim(2, 900), "c": Claim(1, 900)}
    assert fair_shares(600, claims) == {"a": 30, "b": 380, "c": 190}


@given(st.integers(0, 1000), CLAIMS)
def test_nothing_is_given_twice_and_little_is_left(count: int, claims: dict[str, Claim]) -> None:
    shares = fair_shares(count, claims)
    assert all(0 <= shares[key] <= claim.wanted for key, claim in claims.items())
    assert sum(shares.values()) <= count
    wanted = sum(claim.wanted for claim in claims.values())
    assert sum(shares.values()) >= min(count, wanted) - len(claims)


@given(st.integers(0, 1000), CLAIMS)
def test_nobody_who_wants_more_gets_less_than_by_weight(count: int, claims: dict[str, Claim]) -> None:
    shares = fair_shares(count, claims)
    weights = sum(claim.weight for claim in claims.values())
    for key, claim in claims.items():
        assert shares[key] >= min(claim.wanted, count * claim.weight // weights)


def test_limits_are_read() -> None:
    assert parse_account_limits("ses/eu-west-1=50000, smtp/mail.example.com:587=2000") == {
        "ses/eu-west-1": 50000,
        "smtp/mail.example.com:587": 2000,
    }


@pytest.mark.parametrize("wrong", ["ses/eu-west-1", "eu-west-1=5", "ses/eu-west-1=many", "ses/eu-west-1=0"])
def test_a_wrong_limit_is_named(wrong: str) -> None:
    with pytest.raises(BadInput, match="is no limit of an account: write ses/eu-west-1=50000"):
        parse_account_limits(wrong)
