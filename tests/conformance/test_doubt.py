"""Death and doubt: in doubt goes back to the schedule with two proofs, or on an operator's word."""

from __future__ import annotations

from datetime import timedelta

from sendonce.domain.engine.jobs import JobState
from sendonce.domain.mailouts.mailouts import MailoutStatus
from tests.conformance.backdoor import audit, ended_attempts, pass_time
from tests.conformance.stage import ACCEPTED, DEFERRED, DOUBTED, REFUSED, Stage


def test_absence_alone_moves_nothing(stage: Stage) -> None:
    """Without a death proof, no proof of absence sends a letter again."""
    stage.running()
    doubt = stage.in_doubt(dead=False)
    assert stage.store.ledger.prove_absence([(doubt.id, doubt.attempt)], "no event") == 0
    assert stage.state(doubt) == JobState.IN_DOUBT


def test_age_alone_moves_nothing(stage: Stage) -> None:
    """However long a claim is out, nobody else may claim it, and it does not come into doubt by itself."""
    stage.running()
    job = stage.claim_one()
    pass_time(stage.store, 10 * 24 * 3600)
    assert stage.claim().claimed == ()
    assert stage.state(job) == JobState.SENDING
    assert stage.store.ledger.doubts(10) == []


def test_both_proofs_schedule_the_letter_again(stage: Stage) -> None:
    """Death and absence proven: the next attempt has a new number and no proofs yet."""
    stage.running()
    doubt = stage.in_doubt()
    assert stage.store.ledger.prove_absence([(doubt.id, doubt.attempt)], "no event") == 1
    assert stage.job(doubt).absence_proof == "no event"
    assert ended_attempts(stage.store, doubt.id) == [(1, "absent")]
    again = stage.claim_one()
    job = stage.job(again)
    assert (job.attempt, job.death_proof, job.absence_proof) == (2, None, None)


def test_absence_of_another_attempt_moves_nothing(stage: Stage) -> None:
    """The proof names the attempt, so a proof that comes late cannot hit the next one."""
    stage.running()
    doubt = stage.in_doubt()
    assert stage.store.ledger.prove_absence([(doubt.id, 2), (doubt.id, 0)], "no event") == 0


def test_absence_is_proven_once(stage: Stage) -> None:
    """The same proof twice makes one new attempt."""
    stage.running()
    doubt = stage.in_doubt()
    refs = [(doubt.id, doubt.attempt)] * 2
    assert stage.store.ledger.prove_absence(refs, "no event") == 1
    assert stage.store.ledger.prove_absence(refs, "no event") == 0


def test_evidence_beats_a_proof_of_absence(stage: Stage) -> None:
    """An acceptance that comes before the proof of absence leaves nothing to prove."""
    stage.running()
    doubt = stage.in_doubt()
    stage.event(doubt)
    assert stage.store.ledger.prove_absence([(doubt.id, doubt.attempt)], "no event") == 0
    assert stage.state(doubt) == JobState.SENT


def test_absence_reopens_a_finished_mailout(stage: Stage) -> None:
    """A mailout that was sent with one letter in doubt is sending again when that letter is."""
    mailout_id = stage.running(2)
    stage.settle(stage.claim_one(), ACCEPTED)
    doubt = stage.in_doubt()
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT
    stage.store.ledger.prove_absence([(doubt.id, doubt.attempt)], "no event")
    assert stage.get(mailout_id).status == MailoutStatus.SENDING
    stage.settle(stage.claim_one(), ACCEPTED)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT


def test_the_fence_takes_what_was_signed_before(stage: Stage) -> None:
    """Claims older than the signature window come into doubt with a death proof; younger ones do not."""
    stage.running(2)
    old = stage.claim_one()
    young = stage.claim_one()
    assert stage.store.ledger.fence("ses", young.claimed_at, "the signature expired") == 1
    job = stage.job(old)
    assert (job.state, job.death_proof) == (JobState.IN_DOUBT, "the signature expired")
    assert job.death_proof_at is not None
    assert stage.state(young) == JobState.SENDING


def test_the_fence_is_for_one_transport(stage: Stage) -> None:
    """No signature expires over SMTP: its workers are not fenced off."""
    stage.running()
    job = stage.claim_one(stage.worker("smtp"))
    later = stage.store.ledger.now() + timedelta(hours=1)
    assert stage.store.ledger.fence("ses", later, "expired") == 0
    assert stage.state(job) == JobState.SENDING


def test_a_fenced_worker_may_still_tell_its_outcome(stage: Stage) -> None:
    """A zombie that comes back with an acceptance is believed."""
    stage.running()
    job = stage.claim_one()
    stage.store.ledger.fence("ses", stage.store.ledger.now(), "expired")
    stage.settle(job, ACCEPTED)
    assert stage.state(job) == JobState.SENT


def test_doubts_are_those_with_a_death_proof_on_this_transport(stage: Stage) -> None:
    """Who is not proven dead, or went by another transport, is not up for proof of absence."""
    stage.running(3)
    dead = stage.in_doubt()
    stage.in_doubt(dead=False)
    smtp = stage.claim_one(stage.worker("smtp"))
    stage.settle(smtp, DOUBTED, death_proof="its own word")
    (doubt,) = stage.store.ledger.doubts(10, transport="ses")
    assert (doubt.job_id, doubt.attempt) == (dead.id, dead.attempt)
    assert doubt.death_proof_at == dead.death_proof_at


def test_all_doubts_are_shown_to_people(stage: Stage) -> None:
    """Those without a proof and of other transports too, by mailout."""
    mailout_id = stage.running(2)
    stage.in_doubt(dead=False)
    stage.settle(stage.claim_one(stage.worker("smtp")), DOUBTED)
    found = stage.store.ledger.doubts(10, dispatch_id=mailout_id)
    assert [(doubt.transport, doubt.death_proof_at) for doubt in found] == [("ses", None), ("smtp", None)]
    assert len(stage.store.ledger.doubts(1)) == 1
    assert stage.store.ledger.doubts(10, dispatch_id=stage.mailout()) == []


def test_an_operator_says_that_it_was_sent(stage: Stage) -> None:
    """The word is enough without any proof, and is in the audit log."""
    stage.running()
    doubt = stage.in_doubt(dead=False)
    assert stage.store.ledger.resolve([doubt.id], sent=True, actor="jane", note="saw it") == 1
    job = stage.job(doubt)
    assert (job.state, job.reason) == (JobState.SENT, "the word of jane")
    assert ("jane", "resolve", doubt.id) in audit(stage.store)


def test_an_operator_says_that_it_was_not_sent(stage: Stage) -> None:
    """The word fills both proofs, is in the audit log, and the letter goes out again."""
    stage.running()
    doubt = stage.in_doubt(dead=False)
    assert stage.store.ledger.resolve([doubt.id], sent=False, actor="jane", note="not there") == 1
    job = stage.job(doubt)
    assert job.death_proof == job.absence_proof == "the word of jane"
    assert ("jane", "resolve", doubt.id) in audit(stage.store)
    assert stage.claim_one().attempt == 2


def test_evidence_after_an_operators_word_is_no_second_copy(stage: Stage) -> None:
    """An operator says that it was sent, then the event comes: one letter."""
    stage.running()
    doubt = stage.in_doubt()
    stage.store.ledger.resolve([doubt.id], sent=True, actor="jane", note="")
    stage.event(doubt)
    job = stage.job(doubt)
    assert (job.duplicate_at, job.message_id) == (None, "provider-1")


def test_an_operator_resolves_doubt_only(stage: Stage) -> None:
    """Jobs in any other state are not for resolving."""
    stage.running(3)
    sent, sending = stage.claim(limit=2).claimed
    stage.settle(sent, ACCEPTED)
    everything = [job.id for job in stage.store.jobs.list()]
    assert stage.store.ledger.resolve(everything, sent=False, actor="jane", note="") == 0
    assert stage.state(sending) == JobState.SENDING
    assert audit(stage.store) == []


def test_all_doubts_of_one_crash_at_once(stage: Stage) -> None:
    """An operator's word may settle many jobs."""
    stage.running(3)
    ids = [stage.in_doubt().id for _ in range(3)]
    assert stage.store.ledger.resolve(ids, sent=True, actor="jane", note="") == 3


def test_dead_and_failed_jobs_get_another_life(stage: Stage) -> None:
    """Retry schedules them with fresh tries, reopens the mailout, and is in the audit log."""
    mailout_id = stage.running(2)
    dead, failed = stage.claim(limit=2).claimed
    stage.settle(dead, DEFERRED, exhausted=True)
    stage.settle(failed, REFUSED)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.FAILED
    assert stage.store.ledger.retry([dead.id, failed.id], "jane") == 2
    assert stage.get(mailout_id).status == MailoutStatus.SENDING
    again = stage.claim(limit=2).claimed
    assert [(job.attempt, job.tries) for job in again] == [(2, 0), (2, 0)]
    assert {entry[:2] for entry in audit(stage.store)} == {("jane", "retry")}
    assert ended_attempts(stage.store, failed.id) == [(1, "failed")]


def test_only_dead_and_failed_jobs_are_retried(stage: Stage) -> None:
    """A sent or doubtful letter is not sent again by a retry."""
    stage.running(2)
    sent = stage.claim_one()
    stage.settle(sent, ACCEPTED)
    doubt = stage.in_doubt()
    assert stage.store.ledger.retry([sent.id, doubt.id], "jane") == 0
