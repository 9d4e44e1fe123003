"""Workers and their shares of the sending rate."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from sendonce.domain.jobs import ClaimRequest
from sendonce.errors import Refused
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import ACCEPTED, Stage, worker_record

RATE = 6


def test_a_worker_is_open_until_it_ends(stage: Stage) -> None:
    """Registered workers are listed with their start, ended ones are not."""
    workers = stage.store.workers
    record = worker_record(str(uuid4()))
    workers.register(record)
    (found,) = workers.open()
    assert found.started_at is not None
    assert replace(found, started_at=None) == record
    workers.end(record.id, "stopped")
    assert workers.open() == []


def test_a_worker_that_owns_jobs_does_not_end(stage: Stage) -> None:
    """Its jobs must be settled first, or nobody would ever look for them."""
    stage.running()
    worker = stage.worker()
    job = stage.claim_one(worker)
    with pytest.raises(Refused, match="still owns 1 job"):
        stage.store.workers.end(worker, "stopped")
    stage.settle(job, ACCEPTED)
    stage.store.workers.end(worker, "stopped")
    assert stage.store.ledger.sending_of(worker) == []


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


@pytest.mark.parametrize(("seconds", "share"), [(9, 0), (10.5, 0), (11.5, RATE)])
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


def test_a_claim_that_is_committed_after_its_worker_ended_is_a_stray(stage: Stage) -> None:
    """It is found, so that it can be given back; what living workers hold is not."""
    stage.running(2)
    gone, living = stage.worker(), stage.worker()
    stage.store.workers.end(gone, "buried")
    late = stage.store.ledger.turn((), ClaimRequest(gone, "late", 1)).claimed
    stage.store.ledger.turn((), ClaimRequest(living, "now", 1))
    assert list(stage.store.ledger.strays()) == [(job.id, job.attempt) for job in late]


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
