"""Workers and their shares of the sending rate."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from sendonce.domain.engine.jobs import JobState
from sendonce.errors import RefusedByRule, WorkerBuried
from sendonce.flows.engine.miss_workers import RollCall
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import ACCEPTED, NOBODY, Stage, worker_record

RATE = 6


def test_a_worker_is_open_until_it_ends(stage: Stage) -> None:
    """Registered workers are listed with their start, ended ones are not."""
    workers = stage.store.workers
    record = worker_record(str(uuid4()))
    workers.register(record)
    (found,) = workers.open()
    assert found.started_at is not None
    assert replace(found, started_at=None, seen_at=None) == record
    workers.end(record.id, "stopped")
    assert workers.open() == []


def test_a_worker_that_owns_jobs_does_not_end(stage: Stage) -> None:
    """Its jobs must be settled first, or nobody would ever look for them."""
    stage.running()
    worker = stage.worker()
    job = stage.claim_one(worker)
    with pytest.raises(RefusedByRule, match="still owns 1 job"):
        stage.store.workers.end(worker, "stopped")
    stage.settle(job, ACCEPTED)
    stage.store.workers.end(worker, "stopped")
    assert stage.store.ledger.sending_of(worker) == []


def test_an_operators_word_buries_a_worker(stage: Stage) -> None:
    """What it had claimed is in doubt, with a proof of death and none of absence; the rest is untouched."""
    stage.running(4)
    lost, other = stage.worker("smtp"), stage.worker("smtp")
    settled, claimed = stage.claim(lost, limit=2).claimed
    of_other = stage.claim_one(other)
    stage.settle(settled, ACCEPTED)
    assert stage.store.ledger.bury(lost, "jane") == 1
    job = stage.job(claimed)
    assert job.state == JobState.IN_DOUBT
    assert job.death_proof is not None
    assert "jane" in job.death_proof
    assert job.absence_proof is None
    assert stage.state(settled) == JobState.SENT
    assert stage.state(of_other) == JobState.SENDING
    assert [worker.id for worker in stage.store.workers.open()] == [other]
    assert stage.store.ledger.resolve([claimed.id], sent=False, actor="jane", note="") == 1


def test_a_buried_worker_claims_nothing_more(stage: Stage) -> None:
    """So nothing can turn up under its name after its burial."""
    stage.running(2)
    worker = stage.worker()
    stage.store.ledger.bury(worker, "jane")
    with pytest.raises(WorkerBuried):
        stage.claim(worker)
    assert len(stage.claim().claimed) == 2


def test_nobody_is_buried_twice(stage: Stage) -> None:
    stage.running()
    worker = stage.worker()
    stage.store.ledger.bury(worker, "jane")
    with pytest.raises(RefusedByRule, match="over already"):
        stage.store.ledger.bury(worker, "jane")
    with pytest.raises(RefusedByRule, match="over already"):
        stage.store.ledger.bury(NOBODY, "jane")


def test_a_settle_of_a_buried_worker_still_counts(stage: Stage) -> None:
    """The operator was wrong, and the worker lives: its letter was sent, once."""
    stage.running()
    worker = stage.worker()
    job = stage.claim_one(worker)
    stage.store.ledger.bury(worker, "jane")
    stage.settle(job, ACCEPTED)
    assert stage.state(job) == JobState.SENT


def test_workers_are_listed_with_what_they_have_claimed(stage: Stage) -> None:
    """Open ones first, then the last of those that are over."""
    stage.running(3)
    gone, busy = stage.worker(), stage.worker()
    stage.claim(busy, limit=2)
    stage.store.workers.end(gone, "left")
    (only,) = stage.store.workers.statuses()
    assert (only.record.id, only.sending, only.ended_at) == (busy, 2, None)
    _, over = stage.store.workers.statuses(ended=5)
    assert (over.record.id, over.sending, over.end) == (gone, 0, "left")
    assert over.ended_at is not None
    assert stage.store.workers.find(gone) is not None
    assert stage.store.workers.find(NOBODY) is None


def test_a_worker_that_goes_missing_is_named_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Its lock is in another domain, so nobody here may bury it, however long it is silent."""
    worker = stage.worker()
    call = RollCall(stage.store)
    call.call()
    assert caplog.records == []
    pass_time(stage.store, 360)
    call.call()
    call.call()
    (record,) = caplog.records
    assert "is missing" in record.message
    assert record.__dict__["fields"]["worker"] == worker
    assert [each.id for each in stage.store.workers.open()] == [worker]


class Crew:
    """Workers that renew their permits and keep to the answer."""

    def __init__(self, stage: Stage, size: int) -> None:
        self.permits = stage.store.permits
        self.held = {str(uuid4()): 0 for _ in range(size)}

    def renew(self, worker: str, rate: int = RATE) -> int:
        self.held[worker] = self.permits.renew("ses", worker, rate, self.held[worker])
        return self.held[worker]

    def all_renew(self, rate: int = RATE) -> list[int]:
        for worker in self.held:
            self.renew(worker, rate)
        return list(self.held.values())


def test_one_worker_gets_the_whole_rate(stage: Stage) -> None:
    """Nobody else is there."""
    assert Crew(stage, 1).all_renew() == [RATE]


def test_the_sum_of_permits_never_exceeds_the_rate(stage: Stage) -> None:
    """Round by round, while workers come one after another."""
    crew = Crew(stage, 4)
    members = list(crew.held)
    for size in range(1, 5):
        for _ in range(3):
            for worker in members[:size]:
                crew.renew(worker)
                assert sum(crew.held.values()) <= RATE
    assert sorted(crew.held.values()) == [1, 1, 2, 2]


def test_what_is_still_held_is_not_given_away(stage: Stage) -> None:
    """A worker told to shrink keeps its permits in the books until it says that they have come home."""
    first, second = str(uuid4()), str(uuid4())
    renew = stage.store.permits.renew
    assert renew("ses", first, RATE, 0) == 6
    assert renew("ses", second, RATE, 0) == 0
    assert renew("ses", first, RATE, 6) == 3
    assert renew("ses", second, RATE, 0) == 0
    assert renew("ses", first, RATE, 4) == 3
    assert renew("ses", second, RATE, 0) == 2
    assert renew("ses", first, RATE, 3) == 3
    assert renew("ses", second, RATE, 2) == 3


def test_a_lower_rate_shrinks_the_shares(stage: Stage) -> None:
    """Once all have renewed twice, the new rate holds."""
    crew = Crew(stage, 2)
    for _ in range(3):
        crew.all_renew(rate=10)
    assert sum(crew.held.values()) == 10
    for _ in range(3):
        crew.all_renew(rate=3)
    assert sum(crew.held.values()) == 3


def test_keys_are_apart(stage: Stage) -> None:
    """Two accounts have two rates."""
    worker, other = str(uuid4()), str(uuid4())
    assert stage.store.permits.renew("one", worker, RATE, 0) == RATE
    assert stage.store.permits.renew("two", other, RATE, 0) == RATE


@pytest.mark.parametrize(("seconds", "share"), [(9, 0), (10.1, 0), (11.1, RATE)])
def test_permits_of_a_silent_worker_return_after_lease_and_grace(
    stage: Stage, seconds: float, share: int
) -> None:
    """Ten seconds of lease and one of grace, not less: its last letter may have left at the very end."""
    silent, heir = str(uuid4()), str(uuid4())
    stage.store.permits.renew("ses", silent, RATE, 0)
    pass_time(stage.store, seconds)
    assert stage.store.permits.renew("ses", heir, RATE, 0) == share


@pytest.mark.parametrize("how", ["release", "end"])
def test_released_permits_rest_for_the_grace_time(stage: Stage, how: str) -> None:
    """They may have been used this very second."""
    leaver, heir = stage.worker(), str(uuid4())
    stage.store.permits.renew("ses", leaver, RATE, 0)
    if how == "release":
        stage.store.permits.release("ses", leaver)
    else:
        stage.store.workers.end(leaver, "stopped")
    assert stage.store.permits.renew("ses", heir, RATE, 0) == 0
    pass_time(stage.store, 1.5)
    assert stage.store.permits.renew("ses", heir, RATE, 0) == RATE


def test_a_worker_that_ended_claims_nothing_more(stage: Stage) -> None:
    """Who was buried by mistake learns it at the next claim, and the ledger goes on for everybody else."""
    stage.running(2)
    gone, living = stage.worker(), stage.worker()
    stage.settle(stage.claim_one(gone), ACCEPTED)
    stage.store.workers.end(gone, "buried by mistake")
    with pytest.raises(WorkerBuried, match=r"buried by mistake.*Start it again"):
        stage.claim(gone)
    assert stage.store.ledger.sending_of(gone) == []
    assert len(stage.claim(living).claimed) == 1


def test_a_planner_that_ended_holds_up_nobody(stage: Stage) -> None:
    """Its lease goes with it."""
    stage.subscribe(range(3))
    mailout_id = stage.new_mailout().id
    assert stage.store.mailouts.start(mailout_id)
    planner = stage.worker()
    assert stage.store.mailouts.plan_chunk(mailout_id, planner, 1) is not None
    assert stage.store.mailouts.plan_chunk(mailout_id, "another", 1) is None
    stage.store.workers.end(planner, "buried")
    assert stage.store.mailouts.plan_chunk(mailout_id, "another", 1) is not None
