"""The audit of the contact list: does one company stand on it twice?

Duplicates that the rules see are merged already. What they miss shows only when a person looks at a sample,
and the sample has to be large: none among 600 means at most 0.5 % of the list, at a confidence of 95 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log
from random import Random

from sendonce.domain.prospecting.duplicates import Evidence

TARGET = 0.005
SAMPLE = 600
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Listed:
    """A company that may be written to, with the address that a letter would go to."""

    company_id: str
    domain: str
    email: str
    freemail: bool

    @property
    def mail_domain(self) -> str:
        """What must not come twice: the address's domain, or the address itself at a free provider."""
        return self.email if self.freemail else self.email.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Alike:
    """Another company of the list that shares a mark."""

    domain: str
    evidence: Evidence
    value: str


@dataclass(frozen=True, slots=True)
class Examined:
    """A line of the sample. ``same_as`` names those that it may be one with, and ``why``."""

    company_id: str
    domain: str
    name: str
    city: str | None
    inn: str | None
    email: str
    same_as: str
    why: str


@dataclass(frozen=True, slots=True)
class Audit:
    """``repeated`` counts in the whole list; ``suspect`` in the sample, of which ``at_most`` is the bound."""

    listed: int
    repeated: int
    sampled: int
    suspect: int
    seed: int
    at_most: float
    target: float
    rows: Sequence[Examined]

    @property
    def share(self) -> float:
        return self.repeated / self.listed if self.listed else 0.0


def repeats(listed: Iterable[Listed]) -> Mapping[str, Sequence[Listed]]:
    """The domains of addresses that several companies of the list share."""
    shared: defaultdict[str, list[Listed]] = defaultdict(list)
    for each in listed:
        shared[each.mail_domain].append(each)
    return {domain: those for domain, those in shared.items() if len(those) > 1}


def count_repeated(shared: Mapping[str, Sequence[Listed]]) -> int:
    """Of those that share a domain, the first is not repeated."""
    return sum(len(those) - 1 for those in shared.values())


def draw(listed: Sequence[Listed], size: int, seed: int) -> list[Listed]:
    """The same sample for the same list and seed."""
    dice = Random(seed)  # noqa: S311 (not a secret)
    return sorted(dice.sample(listed, min(size, len(listed))), key=lambda each: each.company_id)


def upper_bound(found: int, sampled: int) -> float:
    """The largest share with which so few in a sample are still likely enough (Clopper and Pearson)."""
    if found >= sampled:
        return 1.0
    low, high = found / sampled, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(found, sampled, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _at_most(found: int, sampled: int, share: float) -> float:
    """The probability of at most so many in a sample, each with the same chance."""
    if share >= 1.0:
        return 0.0
    whole = lgamma(sampled + 1)
    return sum(
        exp(
            whole
            - lgamma(count + 1)
            - lgamma(sampled - count + 1)
            + count * log(share)
            + (sampled - count) * log(1 - share)
        )
        for count in range(found + 1)
    )
