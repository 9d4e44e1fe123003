"""A database that went back in time: claims stop, and adoption puts all that may have been sent in doubt."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from sendonce.domain.engine.dispatches import RESTORED
from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.domain.engine.jobs import JobState, Settlement
from sendonce.domain.engine.outcomes import Accepted
from sendonce.domain.engine.workers import ClaimCount
from sendonce.errors import LedgerRolledBack
from sendonce.flows.engine.check_ledger import check_ledger
from sendonce.flows.engine.resolve_doubts import weigh_doubts
from tests.conformance.backdoor import audit
from tests.conformance.stage import ACCEPTED, DEFERRED, REFUSED, Stage


def test_a_halted_ledger_gives_no_claims(stage: Stage) -> None:
    """After a halt every claim is refused with its reason, also where nothing is to be claimed."""
    with_work = stage.running()
    stage.store.ledger.halt("the database is older than the state directory")
    with pytest.raises(LedgerRolledBack, match="older than"):
        stage.claim()
    stage.store.dispatches.set_paused(with_work, True)
    with pytest.raises(LedgerRolledBack, match="older than"):
        stage.claim()


def test_a_halted_ledger_gives_no_claim_back(stage: Stage) -> None:
    """A claim whose answer was lost is not handed out after a halt."""
    stage.running()
    worker, token = stage.worker(), str(uuid4())
    stage.claim(worker, token=token)
    stage.store.ledger.halt("restored")
    with pytest.raises(LedgerRolledBack):
        stage.claim(worker, token=token, retry=True)


def test_a_halted_ledger_takes_outcomes(stage: Stage) -> None:
    """What was on the wire is settled after the halt: a settle is evidence."""
    stage.running()
    job = stage.claim_one()
    stage.store.ledger.halt("restored")
    stage.settle(job, ACCEPTED)
    assert stage.state(job) == JobState.SENT


def test_adoption_puts_open_jobs_in_doubt_and_lifts_the_halt(stage: Stage) -> None:
    """Scheduled and sending may have been sent in the forgotten time; what ended stays as it is."""
    mailout_id = stage.running(4)
    sent, failed, _sending = stage.claim(limit=3).claimed
    stage.settle(sent, ACCEPTED)
    stage.settle(failed, REFUSED)
    stage.store.ledger.halt("restored")
    here = stage.store.fingerprint()
    assert stage.store.ledger.adopt(here, 500, "jane") == 2
    books = stage.store.jobs.books(mailout_id)
    assert (books.sent, books.failed, books.in_doubt, books.open) == (1, 1, 2, 0)
    identity = stage.store.ledger.identity()
    assert (identity.halted, identity.fingerprint) == (None, here)
    assert ("jane", "adopt", "ledger") in audit(stage.store)
    assert stage.claim().claimed == ()


def test_adoption_lifts_the_claim_sequence(stage: Stage) -> None:
    """The next claim's number is above the highest that was seen outside, on this machine or another."""
    stage.running(2)
    stage.claim(limit=1)
    stage.store.ledger.adopt(None, 500, "jane")
    elsewhere = 100_000
    assert stage.store.ledger.identity().claim_seq > 500 + elsewhere
    doubts = [job.id for job in stage.store.jobs.list()]
    stage.store.ledger.resolve(doubts, sent=False, actor="jane", note="")
    assert stage.claim().claim_seq > 500 + elsewhere


def test_adoption_never_lowers_the_claim_sequence(stage: Stage) -> None:
    """A state directory that was lost does not take the ledger back."""
    stage.running(3)
    for _ in range(3):
        highest = stage.claim(limit=1).claim_seq
    stage.store.ledger.adopt(None, 1, "jane")
    assert stage.store.ledger.identity().claim_seq >= highest


def test_adopted_doubt_takes_evidence_of_the_forgotten_time(stage: Stage) -> None:
    """An attempt that only the forgotten time issued settles its job, by event or by outcome, and no halt."""
    stage.running(2)
    stage.store.ledger.adopt(None, 1, "jane")
    by_event, by_outcome = stage.store.jobs.list()
    assert stage.event(by_event, attempt=3) == EventVerdict.APPLIED
    stage.store.ledger.turn([Settlement(by_outcome.id, 1, Accepted("late"))], None)
    for job in (by_event, by_outcome):
        assert stage.state(job) == JobState.SENT
        assert stage.job(job).duplicate_at is None
    assert stage.store.ledger.identity().halted is None


def test_adopted_doubt_is_for_an_operator(stage: Stage) -> None:
    """The proofs of the time before are worth nothing: what was proven dead may have been sent since."""
    stage.running()
    doubt = stage.in_doubt()
    stage.store.ledger.adopt(None, 1, "jane")
    assert stage.store.ledger.doubts(10, transport="ses") == []
    for attempt in (doubt.attempt, stage.job(doubt).attempt):
        assert stage.store.ledger.prove_absence([(doubt.id, attempt)], "no event") == 0


def test_adopted_doubt_does_not_wait_for_a_death_proof(stage: Stage) -> None:
    """Nobody can prove any more who had it: it is parked at once, also where it was sending."""
    stage.running()
    sending = stage.claim_one()
    stage.store.ledger.adopt(None, 1, "jane")
    assert stage.job(sending).worker_id is None
    ((doubt, weighed),) = weigh_doubts(stage.store, timedelta(seconds=1), limit=10)
    assert (doubt.job_id, weighed.parked) == (sending.id, True)


def test_adopted_jobs_can_be_sent_on_an_operators_word(stage: Stage) -> None:
    """Also one whose earlier attempt had ended before the database was copied."""
    stage.running()
    stage.settle(stage.claim_one(), DEFERRED)
    stage.store.ledger.adopt(None, 1, "jane")
    (doubt,) = stage.store.jobs.list()
    assert stage.store.ledger.resolve([doubt.id], sent=False, actor="jane", note="") == 1
    again = stage.claim_one()
    assert again.attempt > doubt.attempt
    stage.settle(again, ACCEPTED)


def test_adoption_pauses_what_may_have_been_planned_since(stage: Stage) -> None:
    """A draft, a ready or a half-planned mailout may have gone out in the forgotten time: it waits."""
    draft, ready = stage.new_mailout(draft=True).id, stage.mailout()
    planning = stage.started(3)
    stage.plan_once(planning, 1)
    running = stage.running(3)
    stage.store.ledger.adopt(None, 1, "jane")
    assert [stage.get(m).paused for m in (draft, ready, planning, running)] == [True, True, True, False]
    stage.store.mailouts.start(ready)
    stage.plan(ready)
    stage.plan(planning)
    assert stage.claim().claimed == ()
    assert stage.get(ready).reason == "the database was restored or copied"
    stage.store.dispatches.set_paused(ready, False)
    assert len(stage.claim().claimed) == 3


def test_a_failed_start_does_not_make_an_adopted_mailout_forget_what_it_is(stage: Stage) -> None:
    """Its page was not fit to be sent, or its time came. It may still have gone out from another copy."""
    mailouts = stage.store.mailouts
    page = stage.new_mailout(source="notion", source_id="page", letter=None).id
    timed = stage.mailout()
    mailouts.schedule(timed, stage.store.ledger.now())
    stage.store.ledger.adopt(None, 1, "jane")
    mailouts.start(page)
    assert mailouts.stop_before_first(page, "the page has no subject")
    assert mailouts.unschedule(timed, "nobody is subscribed")
    assert [(stage.get(m).paused, stage.get(m).reason) for m in (page, timed)] == [(True, RESTORED)] * 2


@pytest.mark.parametrize("attempt", [2, 0, -1])
def test_an_attempt_that_was_never_issued_halts_the_ledger(stage: Stage, attempt: int) -> None:
    """The provider knows a letter that this database never sent: quarantine, and no more claims."""
    stage.running()
    job = stage.claim_one()
    assert stage.event(job, attempt=attempt) == EventVerdict.QUARANTINED
    assert stage.state(job) == JobState.SENDING
    assert job.id in (stage.store.ledger.identity().halted or "")
    with pytest.raises(LedgerRolledBack):
        stage.claim()


def test_a_quarantined_bounce_still_suppresses(stage: Stage) -> None:
    """Whatever became of the database, the mailbox does not exist."""
    stage.running()
    job = stage.claim_one()
    assert stage.event(job, EventKind.BOUNCE, attempt=9) == EventVerdict.QUARANTINED
    assert stage.subscriber().status == "bounced"


ELSEWHERE = "7412345678901234567:00000001:16384"


def recorded_elsewhere(stage: Stage) -> None:
    """The ledger was kept in another database until now."""
    stage.store.ledger.vouch(ELSEWHERE, "the tests")


def test_another_database_is_halted_at_the_next_claim(stage: Stage) -> None:
    """A promoted standby or a copy: no worker claims from it, and the reason says what to do."""
    stage.running(2)
    stage.store.ledger.vouch(stage.store.fingerprint(), "the tests")
    worker = stage.worker()
    stage.claim_one(worker)
    recorded_elsewhere(stage)
    with pytest.raises(LedgerRolledBack, match=rf"{ELSEWHERE}.*db adopt.*--nothing-was-lost"):
        stage.claim(worker)
    assert ELSEWHERE in (stage.store.ledger.identity().halted or "")
    assert stage.store.workers.claims_of([worker]) == {worker: 1}
    with pytest.raises(LedgerRolledBack):
        stage.claim()


def test_another_database_is_halted_before_a_worker_starts(stage: Stage) -> None:
    """Whatever the state directory says: it may be empty."""
    recorded_elsewhere(stage)
    with pytest.raises(LedgerRolledBack, match=ELSEWHERE):
        check_ledger(stage.store, NoWitness())
    assert stage.store.ledger.identity().halted is not None


def test_a_clean_switch_puts_nothing_in_doubt(stage: Stage) -> None:
    """On an operator's word everything goes on as it was, living workers too; the word is audited."""
    mailout_id = stage.running(3)
    worker = stage.worker()
    sending = stage.claim_one(worker)
    recorded_elsewhere(stage)
    with pytest.raises(LedgerRolledBack):
        stage.claim(worker)
    stage.store.ledger.vouch(stage.store.fingerprint(), "jane")
    assert ("jane", "adopt --nothing-was-lost", "ledger") in audit(stage.store)
    check_ledger(stage.store, NoWitness())
    assert len(stage.claim(worker).claimed) == 2
    assert stage.settle(sending, ACCEPTED) == 1
    assert stage.store.jobs.books(mailout_id).in_doubt == 0


def test_a_word_does_not_hide_a_lost_claim(stage: Stage) -> None:
    """Where claims are missing after all, the next one halts the ledger again."""
    stage.running(2)
    worker = stage.worker()
    stage.store.ledger.halt("another database")
    stage.store.ledger.vouch(stage.store.fingerprint(), "jane")
    with pytest.raises(LedgerRolledBack, match="which made 5"):
        stage.claim(worker, claims=5)
    assert stage.store.ledger.identity().halted is not None


@pytest.mark.parametrize("unreadable", range(3))
def test_what_a_role_may_not_read_is_not_compared(stage: Stage, unreadable: int) -> None:
    """A managed server may hide a part; the others still tell."""
    stage.running(1)
    here = (stage.store.fingerprint() or "").split(":")
    if unreadable >= len(here):
        return
    parts = [part if number != unreadable else "?" for number, part in enumerate(here)]
    stage.store.ledger.vouch(":".join(parts), "the tests")
    assert len(stage.claim().claimed) == 1
    stage.store.ledger.vouch(":".join(parts) + ":more", "the tests")
    with pytest.raises(LedgerRolledBack):
        stage.claim()


class NoWitness:
    """A state directory that was lost."""

    def highest_claim(self) -> int:
        return 0

    def claim_counts(self) -> tuple[ClaimCount, ...]:
        return ()
