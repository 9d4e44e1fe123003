"""A settle is evidence: from sending and from in doubt, once or many times, late or in time."""

from __future__ import annotations

import pytest

from sendonce.domain.engine.events import EventKind
from sendonce.domain.engine.jobs import JobState, Settlement
from sendonce.domain.engine.outcomes import Accepted, Deferred, Outcome
from sendonce.errors import LedgerRolledBack
from tests.conformance.backdoor import ended_attempts
from tests.conformance.stage import ACCEPTED, DEFERRED, DOUBTED, NOBODY, REFUSED, THROTTLED, Stage

OUTCOMES: list[tuple[Outcome, JobState]] = [
    (ACCEPTED, JobState.SENT),
    (REFUSED, JobState.FAILED),
    (DEFERRED, JobState.SCHEDULED),
    (DOUBTED, JobState.IN_DOUBT),
]


@pytest.mark.parametrize(("outcome", "state"), OUTCOMES)
def test_each_outcome_has_its_state(stage: Stage, outcome: Outcome, state: JobState) -> None:
    """From sending, every outcome leads where the table says."""
    stage.running()
    job = stage.claim_one()
    assert stage.settle(job, outcome) == 1
    assert stage.state(job) == state


@pytest.mark.parametrize(("outcome", "state"), OUTCOMES)
def test_doubt_is_settled_by_a_late_outcome(stage: Stage, outcome: Outcome, state: JobState) -> None:
    """An outcome counts from in doubt too, also from a worker that was buried meanwhile."""
    stage.running()
    doubt = stage.in_doubt()
    stage.settle(doubt, outcome)
    assert stage.state(doubt) == state


@pytest.mark.parametrize(("outcome", "state"), OUTCOMES)
def test_settling_twice_changes_nothing(stage: Stage, outcome: Outcome, state: JobState) -> None:
    """A settle whose answer was lost may be repeated."""
    stage.running()
    job = stage.claim_one()
    stage.settle(job, outcome)
    once = stage.job(job)
    stage.settle(job, outcome)
    assert stage.job(job) == once


@pytest.mark.parametrize("outcome", [REFUSED, DEFERRED, DOUBTED])
def test_sent_is_never_taken_back(stage: Stage, outcome: Outcome) -> None:
    """After an acceptance no other outcome of the attempt counts."""
    stage.running()
    job = stage.claim_one()
    stage.settle(job, ACCEPTED)
    sent = stage.job(job)
    stage.settle(job, outcome)
    assert stage.job(job) == sent


def test_an_acceptance_keeps_the_providers_name(stage: Stage) -> None:
    """The provider's message id is in the row, and the settle time."""
    stage.running()
    job = stage.claim_one()
    stage.settle(job, Accepted("id-of-the-provider"))
    assert stage.job(job).message_id == "id-of-the-provider"
    assert stage.job(job).settled_at is not None


def test_a_refusal_keeps_the_providers_words(stage: Stage) -> None:
    """Code and reason are there for the report."""
    stage.running()
    job = stage.claim_one()
    stage.settle(job, REFUSED)
    assert (stage.job(job).code, stage.job(job).reason) == ("550", "no such user")


def test_a_deferral_uses_up_a_try(stage: Stage) -> None:
    """The second attempt knows that one try is gone."""
    stage.running()
    second = stage.second_attempt()
    assert (second.attempt, second.tries) == (2, 1)


def test_a_throttled_letter_uses_up_no_try(stage: Stage) -> None:
    """Trouble that is not the letter's own costs it nothing but time."""
    stage.running()
    stage.settle(stage.claim_one(), THROTTLED)
    again = stage.claim_one()
    assert (again.attempt, again.tries) == (2, 0)


def test_tries_used_up_make_a_dead_job(stage: Stage) -> None:
    """The last deferral ends in the dead-letter list."""
    stage.running()
    job = stage.claim_one()
    stage.settle(job, DEFERRED, exhausted=True)
    assert stage.state(job) == JobState.DEAD
    assert stage.claim().claimed == ()


def test_ended_attempts_are_kept(stage: Stage) -> None:
    """Each attempt that did not end the job stays on record."""
    stage.running()
    second = stage.second_attempt()
    stage.settle(second, Deferred("451", "later"))
    assert ended_attempts(stage.store, second.id) == [(1, "deferred"), (2, "deferred")]


def test_an_old_deferral_does_not_move_the_new_attempt(stage: Stage) -> None:
    """A late outcome of attempt 1, short of an acceptance, says nothing about attempt 2."""
    stage.running()
    second = stage.second_attempt()
    for outcome in (DEFERRED, REFUSED, DOUBTED):
        stage.store.ledger.turn([Settlement(second.id, 1, outcome)], None)
    assert (stage.state(second), stage.job(second).attempt) == (JobState.SENDING, 2)


def test_an_old_acceptance_ends_a_job_that_is_waiting(stage: Stage) -> None:
    """Attempt 1 was accepted after all, and nothing newer is on the wire: the job is sent."""
    stage.running()
    second = stage.second_attempt()
    stage.settle(second, DEFERRED)
    stage.store.ledger.turn([Settlement(second.id, 1, Accepted("late"))], None)
    job = stage.job(second)
    assert (job.state, job.message_id, job.duplicate_at) == (JobState.SENT, "late", None)


def test_an_old_acceptance_beside_a_newer_one_is_an_alarm(stage: Stage) -> None:
    """Two accepted attempts are two letters: the books show it."""
    stage.running()
    second = stage.second_attempt()
    stage.settle(second, Accepted("second"))
    stage.store.ledger.turn([Settlement(second.id, 1, Accepted("first"))], None)
    assert stage.job(second).duplicate_at is not None
    assert stage.job(second).message_id == "second"


@pytest.mark.parametrize("outcome", [REFUSED, DEFERRED, DOUBTED])
def test_a_newer_attempt_that_failed_falls_back_on_older_proof(stage: Stage, outcome: Outcome) -> None:
    """Proof for attempt 1 comes while attempt 2 is on the wire; when 2 is not accepted the job is sent."""
    stage.running()
    second = stage.second_attempt()
    stage.event(second, attempt=1)
    assert stage.state(second) == JobState.SENDING
    stage.settle(second, outcome)
    assert stage.state(second) == JobState.SENT
    assert stage.claim().claimed == ()


def test_a_fenced_attempt_falls_back_on_older_proof(stage: Stage) -> None:
    """Proof for attempt 1 keeps attempt 2 out of doubt when its worker is fenced off."""
    stage.running()
    second = stage.second_attempt()
    stage.event(second, attempt=1)
    later = stage.store.ledger.now()
    stage.store.ledger.fence("ses", later, "expired")
    assert stage.state(second) == JobState.SENT


def test_an_event_before_the_settle_wins_nothing_twice(stage: Stage) -> None:
    """The provider's event is often faster than our settle: both together are one acceptance."""
    stage.running()
    job = stage.claim_one()
    stage.event(job, EventKind.DELIVERED)
    stage.settle(job, Accepted("provider-1"))
    final = stage.job(job)
    assert (final.state, final.message_id, final.duplicate_at) == (JobState.SENT, "provider-1", None)


@pytest.mark.parametrize("outcome", [ACCEPTED, REFUSED, DEFERRED, DOUBTED])
def test_a_claim_that_this_store_does_not_know(stage: Stage, outcome: Outcome) -> None:
    """An outcome of an attempt that was never issued here means that the database went back in time."""
    stage.running()
    job = stage.claim_one()
    with pytest.raises(LedgerRolledBack, match=job.id):
        stage.store.ledger.turn([Settlement(job.id, 2, outcome)], None)


def test_a_job_that_this_store_does_not_know(stage: Stage) -> None:
    """The same for a job that is gone altogether."""
    with pytest.raises(LedgerRolledBack, match=NOBODY):
        stage.store.ledger.turn([Settlement(NOBODY, 1, ACCEPTED)], None)


def test_a_refused_turn_leaves_nothing_behind(stage: Stage) -> None:
    """A turn is all or nothing: what was settled beside a vanished claim is not settled."""
    stage.running()
    job = stage.claim_one()
    settlements = [Settlement(job.id, 1, REFUSED), Settlement(job.id, 9, ACCEPTED)]
    with pytest.raises(LedgerRolledBack):
        stage.store.ledger.turn(settlements, None)
    assert stage.state(job) == JobState.SENDING


def test_two_attempts_of_one_job_in_one_turn(stage: Stage) -> None:
    """Acceptances of both attempts, told in one breath, still raise the alarm."""
    stage.running()
    second = stage.second_attempt()
    settlements = [Settlement(second.id, n, Accepted(f"id-{n}")) for n in (1, 2)]
    stage.store.ledger.turn(settlements, None)
    assert stage.state(second) == JobState.SENT
    assert stage.job(second).duplicate_at is not None
