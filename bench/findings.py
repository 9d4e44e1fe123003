"""What was found: a ratio, the bar it is held against, and the figures behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """``value`` against ``bar``: at least, or at most where ``at_most``. Without a bar it is only told."""

    row: str
    what: str
    against: str
    value: float
    unit: str = "×"
    bar: float | None = None
    at_most: bool = False
    rounds: tuple[float, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value <= self.bar if self.at_most else self.value >= self.bar

    @property
    def shown(self) -> str:
        return with_unit(self.value, self.unit)

    @property
    def bar_shown(self) -> str:
        if self.bar is None:
            return ""
        return ("≤ " if self.at_most else "≥ ") + with_unit(self.bar, self.unit)

    @property
    def verdict(self) -> str:
        """In words: met, or what is missing."""
        if self.met is None:
            return ""
        if self.met:
            return "met"
        assert self.bar is not None
        distance = self.value / self.bar - 1 if self.at_most else 1 - self.value / self.bar
        return f"missed by {distance:.0%}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met, "verdict": self.verdict}


def with_unit(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 20 else 3 if unit == "of it" else 2
    return f"{value:,.{digits}f} {unit}"


def ratio_finding(
    row: str, what: str, against: str, ours: Sequence[float], theirs: Sequence[float], **more: Any
) -> Finding:
    """The median of the rounds' ratios: each round compares what ran side by side."""
    ratios = tuple(mine / yours for mine, yours in zip(ours, theirs, strict=True))
    figures = more.pop("figures", {}) | {"ours per s": median(ours), "theirs per s": median(theirs)}
    return Finding(row, what, against, median(ratios), rounds=ratios, figures=figures, **more)
