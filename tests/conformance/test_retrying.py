"""Another life for dead and failed letters, chosen by mailout and code."""

from __future__ import annotations

import pytest

from sendonce.domain.jobs import JobState
from sendonce.domain.outcomes import Refused as RefusedLetter
from sendonce.errors import Refused
from sendonce.flows import retry_jobs
from sendonce.flows.retry_jobs import RetryOrder, RetryReport, retry_all, retry_named
from tests.conformance.stage import ACCEPTED, DEFERRED, DOUBTED, Stage

NO_SET = RefusedLetter("NotFoundException", "no such configuration set")
UNKNOWN = RefusedLetter("550", "no such user")
ALL = (JobState.DEAD, JobState.FAILED)


def burnt(stage: Stage) -> str:
    """Two letters failed for one reason, one for another, one is dead, one is sent, one in doubt."""
    mailout_id = stage.running(6)
    first, second, third, dead, sent, doubted = stage.claim().claimed
    stage.settle(first, NO_SET)
    stage.settle(second, NO_SET)
    stage.settle(third, UNKNOWN)
    stage.settle(dead, DEFERRED, exhausted=True)
    stage.settle(sent, ACCEPTED)
    stage.settle(doubted, DOUBTED)
    return mailout_id


def states(stage: Stage, mailout_id: str) -> dict[str, int]:
    books = stage.store.jobs.books(mailout_id)
    names = ("scheduled", "failed", "dead", "sent", "in_doubt")
    return {name: getattr(books, name) for name in names if getattr(books, name)}


def test_the_dead_and_failed_of_a_mailout_are_scheduled_again(stage: Stage) -> None:
    """What was accepted or is in doubt never moves, and the report counts by state and code."""
    mailout_id = burnt(stage)
    report = retry_all(stage.store, RetryOrder(ALL, mailout_id), "operator")
    assert report == RetryReport(
        moved=4,
        found={
            (JobState.FAILED, "NotFoundException"): 2,
            (JobState.FAILED, "550"): 1,
            (JobState.DEAD, "421"): 1,
        },
    )
    assert states(stage, mailout_id) == {"scheduled": 4, "sent": 1, "in_doubt": 1}


def test_a_code_chooses_among_the_failed(stage: Stage) -> None:
    """The sender's trouble is mended; the recipients that do not exist stay failed."""
    mailout_id = burnt(stage)
    order = RetryOrder([JobState.FAILED], mailout_id, "NotFoundException")
    assert retry_all(stage.store, order, "operator").moved == 2
    assert states(stage, mailout_id) == {"scheduled": 2, "failed": 1, "dead": 1, "sent": 1, "in_doubt": 1}


def test_without_a_mailout_those_of_all_are_chosen(stage: Stage) -> None:
    """Every mailout that burnt by the same cause is helped at once; a cancelled one is left out."""
    mailouts = [burnt(stage), burnt(stage)]
    cancelled = burnt(stage)
    assert stage.store.mailouts.cancel(cancelled)
    order = RetryOrder([JobState.FAILED], None, "NotFoundException")
    assert retry_all(stage.store, order, "operator").moved == 4
    assert [states(stage, each)["scheduled"] for each in mailouts] == [2, 2]
    assert states(stage, cancelled)["failed"] == 3


def test_a_long_list_goes_in_chunks(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """More letters than one transaction takes; a mailout that had ended is reopened."""
    monkeypatch.setattr(retry_jobs, "CHUNK", 3)
    mailout_id = stage.running(8)
    for job in stage.claim().claimed:
        stage.settle(job, NO_SET)
    stage.store.mailouts.complete(mailout_id)
    assert retry_all(stage.store, RetryOrder(ALL, mailout_id), "operator").moved == 8
    assert states(stage, mailout_id) == {"scheduled": 8}
    assert stage.get(mailout_id).status == "sending"


def test_a_cancelled_mailout_gets_no_other_life(stage: Stage) -> None:
    """Cancelling is final, for letters that are named as for all."""
    mailout_id = burnt(stage)
    assert stage.store.mailouts.cancel(mailout_id)
    before = states(stage, mailout_id)
    failed = stage.store.jobs.list(states=[JobState.FAILED], mailout_id=mailout_id)
    with pytest.raises(Refused, match="was cancelled"):
        retry_all(stage.store, RetryOrder(ALL, mailout_id), "operator")
    with pytest.raises(Refused, match="was cancelled"):
        retry_named(stage.store, failed, "operator")
    assert states(stage, mailout_id) == before


def test_a_named_letter_that_was_accepted_does_not_move(stage: Stage) -> None:
    """Of all the letters of a mailout, named one by one, only the dead and failed move."""
    mailout_id = burnt(stage)
    jobs = stage.store.jobs.list(mailout_id=mailout_id)
    report = retry_named(stage.store, jobs, "operator")
    assert (report.moved, report.asked) == (4, 6)
    assert states(stage, mailout_id) == {"scheduled": 4, "sent": 1, "in_doubt": 1}
