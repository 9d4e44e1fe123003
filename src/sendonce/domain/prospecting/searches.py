"""Searches: what to look for and where, and the requests to a provider that they are made of.

    queued ──► submitting ──► submitted ──► fetched ──► done
      ▲            │              │            │
      ├── not ─────┤              ├────────────┴──────► failed    the provider says never
      │   taken    ├─► failed     └───────────────────► expired   the answer was not there in time
      └── once ────┴─► unknown                                    nobody knows whether it was taken

Submitting costs money and is not idempotent at the provider, so ``submitting`` is committed before the
request leaves, and a page of a query has one row, whatever happens. ``search_policy`` decides the arrows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from hashlib import sha256

from sendonce.domain.engine.tenants import TenantId
from sendonce.errors import BadInput

# The narrowest limits of the providers that we know.
MAX_TEXT = 400
MAX_WORDS = 40
# The documents speak of 250 results in one place and of 1,000 in another; a page has a hundred.
MAX_PAGES = 10
USUAL_PAGES = 3

_SPACE = re.compile(r"\s+")


class OperationState(StrEnum):
    QUEUED = "queued"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    FETCHED = "fetched"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


# The keys of the two quotas: submitting and polling have limits of their own.
SUBMITTING = "search submit"
POLLING = "search poll"

RETRIED_BY_WORD = (OperationState.FAILED, OperationState.EXPIRED, OperationState.UNKNOWN)
"""What a person may have submitted again."""


@dataclass(frozen=True, slots=True)
class Region:
    """``code`` is the provider's. A search without a region has an empty one."""

    code: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class SearchWish:
    """Made by ``search_wish``, which checks it."""

    text: str
    region: Region
    pages: int
    direction_id: str | None = None

    @property
    def hash(self) -> str:
        """The same words in the same region for the same direction are one query, however often typed."""
        return _hash(self.text.casefold(), self.region.code, self.direction_id or "")


def search_wish(text: str, region: Region, pages: int, direction_id: str | None = None) -> SearchWish:
    words = _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()
    if not words or not all(c.isprintable() for c in words):
        raise BadInput(f"{text[:60]!r} is not a search: write a few words, such as «производители насосов».")
    if len(words) > MAX_TEXT or len(words.split()) > MAX_WORDS:
        raise BadInput(
            f"The search {words[:40]!r}… is too long: at most {MAX_TEXT} characters and {MAX_WORDS} words."
        )
    if not 1 <= pages <= MAX_PAGES:
        raise BadInput(f"{pages} pages cannot be asked for: give a number from 1 to {MAX_PAGES}.")
    return SearchWish(words, region, pages, direction_id)


def request_hash(tenant_id: TenantId, query_hash: str, page: int) -> str:
    """What a request is known by, here and in the archive."""
    return _hash(tenant_id, query_hash, str(page))


def _hash(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A query as it is kept. ``states`` counts its requests, ``results`` what they found."""

    id: str
    tenant_id: TenantId
    direction_id: str | None
    text: str
    region: Region
    pages: int
    created_at: datetime
    states: Mapping[OperationState, int]
    results: int
    reason: str | None = None

    @property
    def state(self) -> str:
        """In a word: what still moves comes before what has ended."""
        return next(
            (state.value for state in _TELLING if self.states.get(state)), OperationState.QUEUED.value
        )


_TELLING = (
    *(OperationState.SUBMITTING, OperationState.SUBMITTED, OperationState.FETCHED, OperationState.QUEUED),
    *(OperationState.UNKNOWN, OperationState.FAILED, OperationState.EXPIRED, OperationState.DONE),
)


@dataclass(frozen=True, slots=True)
class AddedSearch:
    """``new_pages`` are those that were not asked for before; none: the query was known already."""

    query: SearchQuery
    new_pages: int


@dataclass(frozen=True, slots=True)
class Operation:
    """A request in the hands of a worker. ``submits`` and ``leased_by`` tell its turn from others'."""

    id: str
    tenant_id: TenantId
    state: OperationState
    query_id: str
    page: int
    text: str
    region_code: str
    request_hash: str
    provider_id: str | None
    submits: int
    losses: int
    polls: int
    failures: int
    submitted_at: datetime | None
    answer_place: str | None
    leased_by: str


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of an operation after a turn. Without ``due_at`` nothing is to be done any more.

    ``refunded``: its submission was certainly not taken, so it costs nothing.
    """

    operation: Operation
    state: OperationState
    due_at: datetime | None = None
    provider_id: str | None = None
    answer_place: str | None = None
    results: int | None = None
    code: str = ""
    reason: str = ""
    losses: int = 0
    failures: int = 0
    refunded: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Operations that a worker may work on now. ``wait`` is for how many seconds a limit keeps it from more.

    ``out_of_money``: this month's budget does not allow another submission.
    """

    operations: Sequence[Operation]
    wait: float = 0.0
    out_of_money: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """What a submission costs, and what all of a month may: ``limit`` 0 is no limit."""

    month: datetime
    price: float
    limit: float

    @property
    def key(self) -> str:
        return f"money {self.month:%Y-%m}"

    def affords(self, spent: float) -> int | None:
        """How many submissions; None is any number."""
        if not self.limit or not self.price:
            return None
        # Sums of prices are rounded: a thousandth of one is no reason to stop.
        return max(0, int((self.limit - spent) / self.price + 0.001))


def budget_at(now: datetime, zone: tzinfo, price: float, limit: float) -> Budget:
    """The month is that of the clock on the wall."""
    month = now.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Budget(month, price, limit)


@dataclass(frozen=True, slots=True)
class SearchTally:
    """All of a tenant's searches in numbers. ``in_time`` of the ``answered`` were so within half a day."""

    queries: int
    operations: Mapping[OperationState, int]
    results: int
    answered: int
    in_time: int
