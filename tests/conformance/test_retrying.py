"""Another life for dead and failed letters, chosen by mailout and code."""

from __future__ import annotations

import pytest

from sendonce.domain.engine.events import EventVerdict
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.outcomes import Refused
from sendonce.errors import RefusedByRule
from sendonce.flows.engine import retry_jobs
from sendonce.flows.engine.retry_jobs import RetryOrder, RetryReport, retry_all, retry_named
from tests.conformance.backdoor import audit
from tests.conformance.stage import ACCEPTED, DEFERRED, DOUBTED, Stage

NO_SET = Refused("NotFoundException", "no such configuration set")
UNKNOWN = Refused("550", "no such user")
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
    assert stage.store.dispatches.cancel(cancelled)
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
    stage.store.dispatches.complete(mailout_id)
    assert retry_all(stage.store, RetryOrder(ALL, mailout_id), "operator").moved == 8
    assert states(stage, mailout_id) == {"scheduled": 8}
    assert stage.get(mailout_id).status == "sending"


def test_a_cancelled_mailout_gets_no_other_life(stage: Stage) -> None:
    """Cancelling is final, for letters that are named as for all."""
    mailout_id = burnt(stage)
    assert stage.store.dispatches.cancel(mailout_id)
    before = states(stage, mailout_id)
    failed = stage.store.jobs.list(states=[JobState.FAILED], dispatch_id=mailout_id)
    with pytest.raises(RefusedByRule, match="was cancelled"):
        retry_all(stage.store, RetryOrder(ALL, mailout_id), "operator")
    with pytest.raises(RefusedByRule, match="was cancelled"):
        retry_named(stage.store, failed, "operator")
    assert states(stage, mailout_id) == before


def test_a_named_letter_that_was_accepted_does_not_move(stage: Stage) -> None:
    """Of all the letters of a mailout, named one by one, only the dead and failed move."""
    mailout_id = burnt(stage)
    jobs = stage.store.jobs.list(dispatch_id=mailout_id)
    report = retry_named(stage.store, jobs, "operator")
    assert (report.moved, report.asked) == (4, 6)
    assert states(stage, mailout_id) == {"scheduled": 4, "sent": 1, "in_doubt": 1}


# -- after an adoption: the time that the database forgot may have retried them already -------------------


def adopted_with_ended(stage: Stage) -> str:
    """One letter failed and one died before the database was restored and adopted."""
    mailout_id = stage.running(2)
    failed, dead = stage.claim().claimed
    stage.settle(failed, UNKNOWN)
    stage.settle(dead, DEFERRED, exhausted=True)
    stage.store.ledger.adopt(stage.store.fingerprint(), 1, "jane")
    return mailout_id


def test_what_ended_before_an_adoption_is_left_and_named(stage: Stage) -> None:
    """Chosen or named, it may have been retried and accepted in the forgotten time."""
    mailout_id = adopted_with_ended(stage)
    jobs = stage.store.jobs.list(dispatch_id=mailout_id)
    ids = tuple(job.id for job in jobs)
    for report in (
        retry_all(stage.store, RetryOrder(ALL, mailout_id), "operator"),
        retry_all(stage.store, RetryOrder(ALL, None), "operator"),
        retry_named(stage.store, jobs, "operator"),
    ):
        assert (report.moved, report.asked, report.left) == (0, 2, ids)
    assert stage.store.ledger.retry(ids, "operator") == 0
    assert states(stage, mailout_id) == {"failed": 1, "dead": 1}
    assert "operator" not in {actor for actor, *_ in audit(stage.store)}


@pytest.mark.parametrize("named", [True, False])
def test_a_word_gives_them_another_life(stage: Stage, named: bool) -> None:
    """Their operator knows that no other copy sent them; nothing is left, and the word is audited."""
    mailout_id = adopted_with_ended(stage)
    jobs = stage.store.jobs.list(dispatch_id=mailout_id)
    if named:
        report = retry_named(stage.store, jobs, "operator", not_sent_elsewhere=True)
    else:
        order = RetryOrder(ALL, mailout_id, not_sent_elsewhere=True)
        report = retry_all(stage.store, order, "operator")
    assert (report.moved, report.left) == (2, ())
    assert {("operator", "retry", job.id) for job in jobs} <= set(audit(stage.store))
    assert len(stage.claim().claimed) == 2


def test_what_ended_after_the_adoption_needs_no_word(stage: Stage) -> None:
    """This database made the attempt itself and knows what became of it, until it is adopted again."""
    mailout_id = adopted_with_ended(stage)
    order = RetryOrder(ALL, mailout_id)
    retry_all(stage.store, RetryOrder(ALL, mailout_id, not_sent_elsewhere=True), "operator")
    again, other = stage.claim().claimed
    stage.settle(again, UNKNOWN)
    stage.settle(other, DEFERRED, exhausted=True)
    report = retry_all(stage.store, order, "operator")
    assert (report.moved, report.left) == (2, ())
    for job in stage.claim().claimed:
        stage.settle(job, UNKNOWN)
    stage.store.ledger.adopt(stage.store.fingerprint(), 1, "jane")
    assert retry_all(stage.store, order, "operator").moved == 0


def test_a_clean_switch_leaves_retries_as_they_were(stage: Stage) -> None:
    """Where nothing was lost, nobody can have retried anything unseen."""
    mailout_id = burnt(stage)
    stage.store.ledger.vouch(stage.store.fingerprint(), "jane")
    report = retry_all(stage.store, RetryOrder(ALL, mailout_id), "operator")
    assert (report.moved, report.left) == (4, ())


def test_an_event_of_a_retry_that_was_forgotten_ends_the_job(stage: Stage) -> None:
    """The provider took the second attempt, which this database never made: sent, and no halt."""
    mailout_id = adopted_with_ended(stage)
    for job in stage.store.jobs.list(dispatch_id=mailout_id):
        assert stage.event(job, attempt=2) == EventVerdict.APPLIED
    assert states(stage, mailout_id) == {"sent": 2}
    assert stage.store.ledger.identity().halted is None
