"""Gauges: what the ledger says of itself at one moment, and what two moments say of the time between them.

They are read every few minutes and kept for a day, which is all that charts and rates of the last day need.
No history of letters is looked at for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from sendonce.domain.engine.jobs import Books

READ_EVERY = timedelta(minutes=5)
KEPT_FOR = timedelta(hours=25)
TENANTS_OVER = timedelta(days=30)
"""What a tenant's books count: dispatches that are open, and those that were made since."""
MOST_TENANTS = 50
OTHERS = "other"


@dataclass(frozen=True, slots=True)
class Gauges:
    """``queue_age`` is for how many seconds the job that is due longest has been waiting."""

    taken_at: datetime
    books: Books
    queue_age: float
    tenants: Mapping[str, Books]


def newest_by(readings: Sequence[Gauges], moment: datetime) -> Gauges | None:
    """The last reading by then, in readings with the oldest first."""
    return next((reading for reading in reversed(readings) if reading.taken_at <= moment), None)


@dataclass(frozen=True, slots=True)
class DayRates:
    """Shares of the letters that were accepted in a time; None where there was none.

    Nor can be told how many were delivered where nobody ever told of a delivery, as over SMTP.
    """

    accepted: int
    delivery: float | None
    bounce: float | None
    complaint: float | None


def rates_between(before: Books, now: Books) -> DayRates:
    """An event may come after the letters of its time: a share is never more than all of them."""
    accepted = max(now.sent - before.sent, 0)

    def share(marks: int) -> float | None:
        return min(max(marks, 0) / accepted, 1.0) if accepted else None

    return DayRates(
        accepted,
        share(now.delivered - before.delivered) if now.delivered else None,
        share(now.bounced - before.bounced),
        share(now.complained - before.complained),
    )


def per_hour(readings: Sequence[Gauges], counter: str, now: datetime, hours: int = 24) -> list[int]:
    """By how much a counter rose in each of the last hours, the oldest first."""
    bounds = [now - timedelta(hours=hours - number) for number in range(hours + 1)]
    heights = [_height(readings, counter, bound) for bound in bounds]
    return [max(later - earlier, 0) for earlier, later in pairwise(heights)]


def _height(readings: Sequence[Gauges], counter: str, moment: datetime) -> int:
    """As of the last reading by then; before the first one nothing is known to have happened."""
    by_then = [reading for reading in readings if reading.taken_at <= moment]
    reading = by_then[-1] if by_then else readings[0] if readings else None
    return int(getattr(reading.books, counter)) if reading is not None else 0


def fold_tenants(books: Mapping[str, Books], most: int = MOST_TENANTS) -> dict[str, Books]:
    """Those with the most letters by name, the rest together: names cost a monitoring system memory."""
    by_size = sorted(books, key=lambda name: (-books[name].planned, name))
    named = {name: books[name] for name in by_size[:most]}
    rest = [books[name] for name in by_size[most:]]
    return {**named, OTHERS: sum_of(rest)} if rest else named


def sum_of(books: Sequence[Books]) -> Books:
    return Books(**{name: sum(getattr(each, name) for each in books) for name in Books.__slots__})
