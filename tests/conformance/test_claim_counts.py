"""Every claim counts in its worker's row: a buried worker leaves, a database that went back is halted."""

from __future__ import annotations

from uuid import uuid4

import pytest

from sendonce.domain.engine.jobs import ClaimRequest, JobState, Settlement
from sendonce.domain.engine.workers import ClaimCount
from sendonce.errors import LedgerRolledBack, WorkerBuried
from sendonce.flows.engine.check_ledger import check_ledger
from tests.conformance.backdoor import forget_attempts
from tests.conformance.stage import ACCEPTED, DEFERRED, NOBODY, Stage


def test_claims_are_counted_one_by_one(stage: Stage) -> None:
    """A turn tells the count that the next one has to name; where nothing is due none is made."""
    stage.running(2)
    worker = stage.worker()
    assert [stage.claim(worker, limit=1).claims for _ in range(4)] == [1, 2, 2, 2]
    assert stage.store.workers.claims_of([worker, NOBODY]) == {worker: 2}


def test_a_turn_may_claim_what_it_has_just_put_off(stage: Stage) -> None:
    """A letter that was given back is due at once, and its claim counts. Where listings lag, the next turn
    finds it."""
    stage.running()
    worker = stage.worker()
    job = stage.claim_one(worker)
    turn = stage.store.ledger.turn(
        [Settlement(job.id, job.attempt, DEFERRED)], ClaimRequest(worker, "again", 1, claims=1)
    )
    if not turn.claimed:
        assert turn.claims == 1
        turn = stage.claim(worker, limit=1)
    assert ([again.attempt for again in turn.claimed], turn.claims) == ([2], 2)


def test_a_second_try_beside_other_work_gets_the_first_claim(stage: Stage) -> None:
    """The claim was committed: the second try gives the same jobs and no others, and counts once."""
    stage.running(4)
    worker, token = stage.worker(), str(uuid4())
    first = stage.claim(worker, limit=2, token=token)
    again = stage.claim(worker, limit=2, token=token, retry=True)
    assert (again.claimed, again.claims) == (first.claimed, 1)
    assert stage.store.jobs.count_by_state() == {"scheduled": 2, "sending": 2}


def test_a_second_try_of_a_claim_that_found_nothing(stage: Stage) -> None:
    """There is no job to tell by its token, but the worker's row tells: it may go on."""
    worker, token = stage.worker(), str(uuid4())
    first = stage.claim(worker, token=token, retry=True)
    again = stage.store.ledger.turn((), ClaimRequest(worker, token, 5, claims=0, retry=True))
    assert (first.claimed, again.claimed) == ((), ())
    stage.running()
    assert len(stage.claim(worker, claims=again.claims).claimed) == 1


def test_a_claim_that_nobody_waits_for_is_not_made(stage: Stage) -> None:
    """A claim that reaches the server after its worker went on without it finds the count taken."""
    stage.running(4)
    worker = stage.worker()
    known = stage.store.ledger.turn((), ClaimRequest(worker, "the second try", 2, retry=True)).claimed
    with pytest.raises(WorkerBuried, match="another process"):
        stage.store.ledger.turn((), ClaimRequest(worker, "the first, late", 2))
    assert stage.store.ledger.sending_of(worker) == sorted((job.id, job.attempt) for job in known)
    assert stage.store.ledger.identity().halted is None


def test_a_database_with_fewer_claims_than_were_made_is_halted(stage: Stage) -> None:
    """One worker notices, and no worker claims any more; nothing of the claim is left behind."""
    stage.running(3)
    worker = stage.worker()
    with pytest.raises(LedgerRolledBack, match=r"knows of 0 claims .* which made 7.*db adopt"):
        stage.claim(worker, claims=7)
    assert "7" in (stage.store.ledger.identity().halted or "")
    with pytest.raises(LedgerRolledBack, match="which made 7"):
        stage.claim()
    assert stage.store.jobs.count_by_state() == {"scheduled": 3}


def test_a_database_that_does_not_know_the_worker_is_halted(stage: Stage) -> None:
    """It registered before it claimed, so a database without its row is an older one."""
    stage.running()
    with pytest.raises(LedgerRolledBack, match="does not know worker"):
        stage.claim(NOBODY)
    with pytest.raises(LedgerRolledBack, match="does not know worker"):
        stage.claim()


def test_a_vanished_claim_halts_the_ledger_for_everybody(stage: Stage) -> None:
    """The worker whose outcome has no claim any more is not the only one that stops."""
    stage.running(2)
    job = stage.claim_one()
    forget_attempts(stage.store)
    with pytest.raises(LedgerRolledBack, match=job.id):
        stage.settle(job, ACCEPTED)
    assert job.id in (stage.store.ledger.identity().halted or "")
    with pytest.raises(LedgerRolledBack, match=job.id):
        stage.claim()
    assert stage.store.jobs.count_by_state() == {"scheduled": 2}


def test_a_vanished_claim_in_a_turn_that_claims_halts_too(stage: Stage) -> None:
    """Neither the settle nor the claim of that turn is left behind, but the halt is."""
    stage.running(3)
    worker = stage.worker()
    job = stage.claim_one(worker)
    forget_attempts(stage.store)
    with pytest.raises(LedgerRolledBack):
        stage.store.ledger.turn(
            [Settlement(job.id, job.attempt, ACCEPTED)], ClaimRequest(worker, "next", 2, claims=1)
        )
    assert stage.store.ledger.identity().halted is not None
    assert stage.store.workers.claims_of([worker]) == {worker: 1}
    assert stage.store.jobs.count_by_state() == {"scheduled": 3}


def test_the_first_reason_of_a_halt_stays(stage: Stage) -> None:
    """What other workers run into later does not hide it."""
    stage.store.ledger.halt("first")
    stage.store.ledger.halt("second")
    assert stage.store.ledger.identity().halted == "first"


def test_adoption_sends_workers_away_and_does_not_halt_again(stage: Stage) -> None:
    """Workers of the time before may know counts that the database lost: they come again as new ones."""
    stage.running(2)
    worker = stage.worker()
    job = stage.claim_one(worker)
    stage.store.ledger.adopt(None, 1, "jane")
    for buried, claims in ((worker, 9), (NOBODY, 3)):
        with pytest.raises(WorkerBuried):
            stage.claim(buried, claims=claims)
    assert stage.store.workers.open() == []
    assert stage.store.ledger.identity().halted is None
    stage.settle(job, ACCEPTED)
    assert stage.state(job) == JobState.SENT


class Witness:
    """A state directory that knows of these counts."""

    def __init__(self, *counts: ClaimCount) -> None:
        self._counts = counts

    def highest_claim(self) -> int:
        return 0

    def claim_counts(self) -> tuple[ClaimCount, ...]:
        return self._counts


@pytest.mark.parametrize("ahead", ["one more claim", "an unknown worker", "an unknown adoption"])
def test_a_count_outside_the_database_shows_that_it_went_back(stage: Stage, ahead: str) -> None:
    """Before a worker starts, also where the workers of that time are gone. Adoption settles it."""
    stage.store.ledger.adopt(stage.store.fingerprint(), 1, "jane")
    stage.running()
    worker = stage.worker()
    stage.claim_one(worker)
    check_ledger(stage.store, Witness(ClaimCount(worker, 1, 1), ClaimCount(NOBODY, 9, 0)))
    count = {
        "one more claim": ClaimCount(worker, 2, 1),
        "an unknown worker": ClaimCount(NOBODY, 1, 1),
        "an unknown adoption": ClaimCount(worker, 1, 2),
    }[ahead]
    with pytest.raises(LedgerRolledBack, match=count.worker_id):
        check_ledger(stage.store, Witness(count))
    assert stage.store.ledger.identity().halted is not None
    stage.store.ledger.adopt(stage.store.fingerprint(), 1, "jane")
    check_ledger(stage.store, Witness(ClaimCount(worker, 2, 1)))
