"""The funnel: how many of what was searched for became companies, contacts and letters that arrived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sendonce.domain.engine.jobs import JobState
from sendonce.domain.prospecting.companies import CompanyStatus
from sendonce.domain.prospecting.quotas import WindowUse
from sendonce.domain.prospecting.searches import SearchTally
from sendonce.domain.prospecting.written_letters import LetterStatus

MONTHLY_COMPANIES = 5_000
SENT_WELL = 0.95
MOST_REPEATED = 0.005

_ENDED = (JobState.SENT, JobState.FAILED, JobState.DEAD, JobState.IN_DOUBT)


@dataclass(frozen=True, slots=True)
class OutreachTally:
    """``letters`` by status; ``jobs`` are the states of those that are planned, ``bounced`` a mark on them.

    ``found_in_month`` leaves out duplicates.
    """

    companies: Mapping[CompanyStatus, int]
    found_in_month: int
    letters: Mapping[LetterStatus, int]
    jobs: Mapping[JobState, int]
    bounced: int


@dataclass(frozen=True, slots=True)
class NightLeft:
    """``left`` of tonight's window while it is open; otherwise it ``opens`` again."""

    left: timedelta | None
    opens: datetime | None


@dataclass(frozen=True, slots=True)
class Target:
    """``value`` is None, and so is ``met``, where there is nothing to measure yet."""

    name: str
    value: float | None
    goal: float
    met: bool | None


@dataclass(frozen=True, slots=True)
class Funnel:
    """``listed`` are on the contact list; ``repeated`` share an address or its domain with an earlier one."""

    searches: SearchTally
    outreach: OutreachTally
    listed: int
    repeated: int
    submitting: Sequence[WindowUse]
    polling: Sequence[WindowUse]
    spent: float
    monthly_budget: float
    night: NightLeft

    def stages(self) -> Iterator[tuple[str, int, str]]:
        """Each stage, how many got there, and what became of the others."""
        tally, letters = self.outreach, self.outreach.letters
        yield "queries", self.searches.queries, ""
        yield "operations", sum(self.searches.operations.values()), _told(self.searches.operations)
        yield "results", self.searches.results, ""
        yield "companies", sum(tally.companies.values()), _told(tally.companies)
        yield "with contacts", self.listed, "may be written to by e-mail"
        yield "letters", sum(letters.values()), _told(letters)
        others = {state: count for state, count in tally.jobs.items() if state is not JobState.SENT}
        bounced = f"{tally.bounced} bounced" if tally.bounced else ""
        yield "sent", tally.jobs.get(JobState.SENT, 0), ", ".join(filter(None, (_told(others), bounced)))

    def targets(self) -> Iterator[Target]:
        tally = self.outreach
        found = tally.found_in_month
        yield Target("companies found this month", found, MONTHLY_COMPANIES, found >= MONTHLY_COMPANIES)
        yield _share("answers within 12 hours", self.searches.in_time, self.searches.answered, 1.0)
        well = tally.jobs.get(JobState.SENT, 0) - tally.bounced
        ended = sum(tally.jobs.get(state, 0) for state in _ENDED)
        yield _share("letters sent well", well, ended, SENT_WELL)
        repeated = _share("repeated domains", self.repeated, self.listed, MOST_REPEATED)
        met = None if repeated.value is None else repeated.value <= MOST_REPEATED
        yield Target(repeated.name, repeated.value, repeated.goal, met)


def _share(name: str, part: int, whole: int, goal: float) -> Target:
    share = part / whole if whole else None
    return Target(name, share, goal, None if share is None else share >= goal)


def _told(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} {str(state).replace('_', ' ')}" for state, count in counts.items() if count)
