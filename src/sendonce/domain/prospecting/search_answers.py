"""What a search provider says: to a request, to the question for its answer, and in the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from sendonce.domain.prospecting.quotas import Limit


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """``page`` counts from 0."""

    text: str
    region_code: str
    page: int


@dataclass(frozen=True, slots=True)
class ProviderTerms:
    """``page_size`` results are on a page; an answer is worth asking for after ``first_poll`` and is kept for
    ``results_live``. Submitting and fetching have limits of their own."""

    page_size: int
    first_poll: timedelta
    results_live: timedelta
    submitting: Sequence[Limit]
    fetching: Sequence[Limit]


# -- to a submission -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider works on it, under a name of its own."""

    provider_id: str


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The provider has certainly not taken it. ``for_all``: neither would it take another one now.

    ``by_settings``: our settings are wrong, so that waiting mends nothing.
    """

    reason: str
    code: str = ""
    retry_after: float | None = None
    for_all: bool = True
    by_settings: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider will never take it."""

    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class FateUnknown:
    """It was sent, and no answer tells whether it was taken."""

    reason: str
    code: str = ""


Submission = Accepted | NotTaken | Refused | FateUnknown


# -- to the question for an answer -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pending:
    """The provider is at it still."""


@dataclass(frozen=True, slots=True)
class Ready:
    """``data`` is the answer as it came."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Gone:
    """The provider does not know it, or no more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The provider could not answer. ``passing``: submitted once more, it may."""

    reason: str
    code: str = ""
    passing: bool = False


@dataclass(frozen=True, slots=True)
class NotNow:
    """The question was not answered. ``for_all``: neither would another one be.

    ``by_settings``: our settings are wrong, so that waiting mends nothing.
    """

    reason: str
    code: str = ""
    retry_after: float | None = None
    for_all: bool = True
    by_settings: bool = False


Fetch = Pending | Ready | Gone | Failed | NotNow


# -- in an answer ----------------------------------------------------------------------------------


class Verdict(StrEnum):
    RESULTS = "results"
    NOTHING = "nothing"  # there is nothing to find: a success
    AGAIN = "again"  # a passing trouble of the provider
    NEVER = "never"  # the request is wrong, or the account


@dataclass(frozen=True, slots=True)
class SerpDocument:
    """One result, as the provider shows it. ``position`` counts from 1 on its page."""

    url: str
    position: int
    title: str
    snippet: str
    language: str | None


@dataclass(frozen=True, slots=True)
class SerpPage:
    """``cut`` says that the answer ended in the middle: what came before is here."""

    verdict: Verdict
    documents: Sequence[SerpDocument] = ()
    code: str = ""
    reason: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SerpResult:
    """A result with the site that it leads to. ``position`` counts from 1 over all pages of the query."""

    url: str
    domain: str | None
    kind: str
    position: int
    title: str
    snippet: str
    language: str | None
    source: str
