"""Rotation: which sender of a direction writes to the next person.

Smooth weighted round robin. Each turn every sender gains its weight, the one with the most is picked and
pays the sum of all weights: picks follow the weights exactly over a cycle and are spread evenly within it.
Domains take turns first and their senders after them, so that no domain is written from more often for
having more mailboxes than its weight says.

A sender's weight is its reputation, from 0.05 to 1, times what its day still allows: one that may send
nothing more today is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_FLOOR = 0.05
# What a share of 1 % costs: complaints weigh most, deferrals least.
_PER_BOUNCE, _PER_COMPLAINT, _PER_DEFERRAL = 8.0, 300.0, 2.0
# So many letters that went well are assumed of everybody, so that the first bounce does not ruin a newcomer.
_BENEFIT = 50


@dataclass(frozen=True, slots=True)
class Record:
    """What became of the newest letters of a sender."""

    letters: int = 0
    bounces: int = 0
    complaints: int = 0
    deferrals: int = 0


def reputation(record: Record) -> float:
    """From 1, nothing wrong, down to 0.05, the least that still lets a sender show that it got better."""
    letters = record.letters + _BENEFIT
    trouble = (
        _PER_BOUNCE * record.bounces + _PER_COMPLAINT * record.complaints + _PER_DEFERRAL * record.deferrals
    )
    return max(_FLOOR, 1 - trouble / letters)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sender that may send now: what it may still send today, and how well it did."""

    sender_id: str
    domain: str
    left_today: int
    reputation: float = 1.0

    @property
    def weight(self) -> float:
        return self.reputation * self.left_today


@dataclass
class Rotation:
    """The standing of every sender and domain. Kept between picks, so that turns go on where they ended."""

    credits: dict[str, float] = field(default_factory=dict)

    def pick(self, candidates: Sequence[Candidate]) -> str | None:
        """The sender whose turn it is, or None if nobody may send."""
        able = sorted((c for c in candidates if c.left_today > 0), key=lambda c: c.sender_id)
        if not able:
            return None
        by_domain: dict[str, list[Candidate]] = {}
        for candidate in able:
            by_domain.setdefault(candidate.domain, []).append(candidate)
        domain = self._turn_of({f"@{name}": _sum(group) for name, group in by_domain.items()})
        return self._turn_of({c.sender_id: c.weight for c in by_domain[domain.removeprefix("@")]})

    def _turn_of(self, weights: Mapping[str, float]) -> str:
        for name, weight in weights.items():
            self.credits[name] = self.credits.get(name, 0.0) + weight
        first = max(weights, key=lambda name: self.credits[name])
        self.credits[first] -= sum(weights.values())
        return first


def _sum(group: Sequence[Candidate]) -> float:
    return sum(candidate.weight for candidate in group)
