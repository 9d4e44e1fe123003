"""Accounts at providers: the senders of several tenants may share one, and with it its letters a day.

Each tenant gets its share of an account's letters, by its weight. What a tenant does not want is shared among
those that want more, by their weights again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from sendonce.errors import BadInput

T = TypeVar("T")


class Claim(NamedTuple):
    """What a tenant has and wants of an account, and its weight beside the others."""

    weight: int
    wanted: int


def fair_shares(count: int, claims: Mapping[T, Claim]) -> dict[T, int]:
    """How many of ``count`` letters each may have; never more than it wants, never more than all together."""
    shares: dict[T, int] = {}
    rest, open_ = count, dict(claims)
    while open_:
        weights = sum(claim.weight for claim in open_.values())
        modest = {key: c for key, c in open_.items() if c.wanted * weights <= rest * c.weight}
        if not modest:
            return shares | {key: rest * claim.weight // weights for key, claim in open_.items()}
        for key, claim in modest.items():
            shares[key] = claim.wanted
            rest -= claim.wanted
            del open_[key]
    return shares


def parse_account_limits(text: str) -> dict[str, int]:
    """``ses/eu-west-1=50000, smtp/mail.example.com:587=2000``: letters of campaigns in any 24 hours."""
    limits: dict[str, int] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, number = (piece.strip() for piece in part.rpartition("="))
        if "/" not in name or not number.isdigit() or int(number) < 1:
            raise BadInput(
                f"ACCOUNT_LIMITS: {part!r} is no limit of an account: write ses/eu-west-1=50000 "
                "(letters in 24 hours)."
            )
        limits[name] = int(number)
    return limits
