"""Death by signature: letters that are too old for their provider, and workers that no lock shows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from sendonce.adapters.signatures import Diskless, SignatureExpiry
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.workers import MISSING_AFTER
from sendonce.errors import Unavailable, WorkerBuried
from sendonce.flows.engine.bury import bury_the_dead
from sendonce.flows.engine.enlist import Enlistment
from sendonce.flows.engine.fence_off import fence_off
from sendonce.ports.store import Store
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import ACCEPTED, Stage, worker_record

WINDOW = timedelta(minutes=20)
A_WHILE = WINDOW.total_seconds() + 1


@dataclass
class Clock:
    """The provider's own, which agrees with the store's unless it is ``behind``."""

    store: Store
    behind: timedelta = timedelta()
    asked: int = 0
    name: str = "ses"

    async def server_time(self) -> datetime:
        self.asked += 1
        return self.store.ledger.now() - self.behind


def fence(clock: Clock) -> int:
    return asyncio.run(fence_off(clock.store, SignatureExpiry(clock, WINDOW)))


def enlisted(stage: Stage) -> str:
    """A worker without a disk."""
    worker_id = str(uuid4())
    Enlistment(worker_id, "w", "ses", "route", "", stage.store, Diskless()).sign_on(8)
    return worker_id


def open_workers(stage: Stage) -> set[str]:
    return {worker.id for worker in stage.store.workers.open()}


def test_a_worker_without_a_disk_dies_by_its_signatures(stage: Stage) -> None:
    """Its letters are in doubt with a death proof, it is over, and it can claim nothing more."""
    stage.running(2)
    worker_id = enlisted(stage)
    letter = stage.claim_one(worker_id)
    pass_time(stage.store, A_WHILE)
    assert bury_the_dead(stage.store, Diskless(), 0.0) == []
    assert fence(Clock(stage.store)) == 1
    assert stage.state(letter) == JobState.IN_DOUBT
    assert "the signature expired" in (stage.job(letter).death_proof or "")
    assert worker_id not in open_workers(stage)
    with pytest.raises(WorkerBuried):
        stage.claim(worker_id)


def test_the_providers_clock_decides(stage: Stage) -> None:
    """By the store's clock the window is over; the provider would still take the letter."""
    stage.running(1)
    worker_id = enlisted(stage)
    letter = stage.claim_one(worker_id)
    pass_time(stage.store, A_WHILE)
    assert fence(Clock(stage.store, behind=timedelta(minutes=1))) == 0
    assert stage.state(letter) == JobState.SENDING
    assert worker_id in open_workers(stage), "a worker that holds a letter is not over, however silent"


def test_a_provider_that_does_not_answer_proves_nothing(stage: Stage) -> None:
    class Silent(Clock):
        async def server_time(self) -> datetime:
            raise Unavailable("SES did not answer GetAccount.")

    stage.running(1)
    letter = stage.claim_one(enlisted(stage))
    pass_time(stage.store, A_WHILE)
    with pytest.raises(Unavailable):
        fence(Silent(stage.store))
    assert stage.state(letter) == JobState.SENDING


def test_the_provider_is_asked_only_where_something_is_old(stage: Stage) -> None:
    stage.running(1)
    letter = stage.claim_one(enlisted(stage))
    clock = Clock(stage.store)
    assert (fence(clock), clock.asked) == (0, 0)
    pass_time(stage.store, A_WHILE)
    stage.settle(letter, ACCEPTED)
    assert (fence(clock), clock.asked) == (0, 0)


def test_only_who_is_silent_and_holds_no_lock_is_over(stage: Stage) -> None:
    """A lock can be asked for, and whoever holds one is left to those who see it."""
    locked, unlocked = stage.worker(), enlisted(stage)
    other_way = str(uuid4())
    stage.store.workers.register(replace(worker_record(other_way, "smtp"), lock_domain=""))
    assert fence(Clock(stage.store)) == 0
    assert open_workers(stage) == {locked, unlocked, other_way}
    pass_time(stage.store, A_WHILE)
    fence(Clock(stage.store))
    assert open_workers(stage) == {locked, other_way}


def test_nobody_is_called_to_look_for_a_worker_without_a_lock(stage: Stage) -> None:
    worker_id = enlisted(stage)
    pass_time(stage.store, MISSING_AFTER.total_seconds() + 1)
    status = stage.store.workers.find(worker_id)
    assert status is not None
    now = stage.store.ledger.now()
    assert (status.record.is_missing(now), status.record.is_at_work(now)) == (False, False)
    assert replace(status.record, lock_domain="domain").is_missing(now)


def test_who_leaves_in_order_leaves_no_trace(stage: Stage) -> None:
    stage.running(1)
    mortality = Diskless()
    enlistment = Enlistment(str(uuid4()), "w", "ses", "route", "", stage.store, mortality)
    life = enlistment.sign_on(8)
    letter = stage.claim_one(enlistment.worker_id)
    life.claimed(1, 1)
    assert life.wire(letter.id, letter.attempt)
    life.reply(letter.id, letter.attempt, ACCEPTED)
    stage.settle(letter, ACCEPTED)
    enlistment.sign_off(life)
    assert open_workers(stage) == set()
    assert (mortality.highest_claim(), mortality.claim_counts()) == (0, ())
