"""The funnel and its targets, from the numbers of the books."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sendonce.domain.engine.jobs import JobState
from sendonce.domain.prospecting.companies import CompanyStatus
from sendonce.domain.prospecting.funnel import Funnel, NightLeft, OutreachTally
from sendonce.domain.prospecting.searches import OperationState, SearchTally
from sendonce.domain.prospecting.written_letters import LetterStatus

NOTHING = Funnel(
    searches=SearchTally(0, {}, 0, 0, 0),
    outreach=OutreachTally({}, 0, {}, {}, 0),
    listed=0,
    repeated=0,
    submitting=(),
    polling=(),
    spent=0.0,
    monthly_budget=0.0,
    night=NightLeft(timedelta(hours=1), None),
)
BUSY = replace(
    NOTHING,
    searches=SearchTally(2, {OperationState.DONE: 5, OperationState.EXPIRED: 1}, 430, 5, 4),
    outreach=OutreachTally(
        companies={CompanyStatus.ENRICHED: 90, CompanyStatus.DUPLICATE: 10},
        found_in_month=5_000,
        letters={LetterStatus.WAITING: 5, LetterStatus.PLANNED: 40},
        jobs={JobState.SENT: 38, JobState.FAILED: 1, JobState.SCHEDULED: 1},
        bounced=1,
    ),
    listed=80,
    repeated=1,
)


def test_each_stage_tells_what_became_of_the_others() -> None:
    assert {stage: (count, told) for stage, count, told in BUSY.stages()} == {
        "queries": (2, ""),
        "operations": (6, "5 done, 1 expired"),
        "results": (430, ""),
        "companies": (100, "90 enriched, 10 duplicate"),
        "with contacts": (80, "may be written to by e-mail"),
        "letters": (45, "5 waiting, 40 planned"),
        "sent": (38, "1 failed, 1 scheduled, 1 bounced"),
    }


def test_targets_are_met_or_not() -> None:
    """A letter that bounced was not sent well; one that has not left yet is not counted."""
    targets = {target.name: target for target in BUSY.targets()}
    assert targets["companies found this month"].met
    assert targets["answers within 12 hours"].value == 0.8
    assert not targets["answers within 12 hours"].met
    assert targets["letters sent well"].value == 37 / 39
    assert not targets["letters sent well"].met
    assert targets["repeated domains"].value == 1 / 80
    assert not targets["repeated domains"].met


def test_nothing_is_judged_before_there_is_something() -> None:
    unknown = [target.name for target in NOTHING.targets() if target.met is None]
    assert unknown == ["answers within 12 hours", "letters sent well", "repeated domains"]
