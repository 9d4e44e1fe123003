"""What letters cost: unit prices from a table, for so many letters a month."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sendonce.errors import BadInput

VOLUMES = (10_000, 100_000, 1_000_000)


class UnitPrice(NamedTuple):
    """``per_letter`` and ``per_month`` in US dollars. ``letters_free`` of a month cost nothing."""

    service: str
    per_letter: float
    per_month: float
    letters_free: int
    assumption: str

    def of(self, letters: int) -> float:
        return self.per_month + self.per_letter * max(0, letters - self.letters_free)


class Cost(NamedTuple):
    letters_per_month: int
    service: str
    usd: float
    assumption: str


def read_prices(lines: Iterable[str]) -> list[UnitPrice]:
    prices = []
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        prices.append(_price(row))
    return prices


def _price(row: Mapping[str, str]) -> UnitPrice:
    try:
        numbers = float(row["per_letter"]), float(row["per_month"]), int(row["letters_free"])
    except (KeyError, ValueError) as exc:
        raise BadInput(f"The table of prices has a line that cannot be read: {dict(row)}.") from exc
    return UnitPrice(row["service"], *numbers, row["assumption"])


def estimate(prices: Iterable[UnitPrice], volumes: Iterable[int] = VOLUMES) -> list[Cost]:
    """A line for each volume and service, and a total for each volume."""
    table = list(prices)
    costs: list[Cost] = []
    for letters in volumes:
        each = [
            Cost(letters, price.service, round(price.of(letters), 2), price.assumption) for price in table
        ]
        total = round(sum(cost.usd for cost in each), 2)
        costs += [*each, Cost(letters, "total", total, "")]
    return costs
