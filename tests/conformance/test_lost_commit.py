"""The reply to a COMMIT is lost: nothing is sent, and the claim is found again by its token."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.engine.jobs import ClaimRequest, JobState, Settlement
from sendonce.errors import RefusedByRule, StoreLost
from tests.conformance.commit_cutter import CommitCutter
from tests.conformance.stage import ACCEPTED, DEFERRED, Stage
from tests.crash.world import until


@pytest.fixture
def cutter(postgres_url: str) -> Iterator[CommitCutter]:
    with closing(CommitCutter(postgres_url)) as proxy:
        yield proxy


@pytest.fixture
def remote(cutter: CommitCutter) -> Iterator[SqlStore]:
    """The store as the worker reaches it, through the proxy."""
    with closing(open_store(cutter.url)) as store:
        yield store


@pytest.fixture
def stage(postgres_url: str) -> Iterator[Stage]:
    """The same store, reached without it."""
    with closing(open_store(postgres_url)) as store:
        yield Stage(store)


@pytest.mark.parametrize("before", [True, False])
def test_a_lost_claim_is_found_by_its_token(
    stage: Stage, remote: SqlStore, cutter: CommitCutter, before: bool
) -> None:
    """Whether the COMMIT happened or not, asking again gives each job once."""
    stage.running(5)
    worker = stage.worker()
    cutter.cut(before=before)
    with pytest.raises(StoreLost, match="not confirmed"):
        remote.ledger.turn((), ClaimRequest(worker, "token", 2))
    found = remote.ledger.turn((), ClaimRequest(worker, "token", 2, retry=True)).claimed
    assert len(found) == 2
    assert {job.attempt for job in found} == {1}
    sending = stage.store.ledger.sending_of(worker)
    assert sorted(sending) == sorted((job.id, job.attempt) for job in found)
    others = stage.claim().claimed
    assert {job.id for job in others}.isdisjoint(job.id for job in found)


@pytest.mark.parametrize("before", [True, False])
def test_a_lost_settle_may_be_repeated(
    stage: Stage, remote: SqlStore, cutter: CommitCutter, before: bool
) -> None:
    """The same settlements again, with the same claim: nothing counts twice."""
    stage.running(4)
    worker = stage.worker()
    accepted, deferred = stage.claim(worker, limit=2).claimed
    settlements = [
        Settlement(accepted.id, accepted.attempt, ACCEPTED),
        Settlement(deferred.id, deferred.attempt, DEFERRED, retry_after=3600.0),
    ]
    cutter.cut(before=before)
    with pytest.raises(StoreLost):
        remote.ledger.turn(settlements, ClaimRequest(worker, "token", 2, claims=1))
    turn = remote.ledger.turn(settlements, ClaimRequest(worker, "token", 2, claims=1, retry=True))
    assert len(turn.claimed) == 2
    assert stage.state(accepted) == JobState.SENT
    assert (stage.state(deferred), stage.job(deferred).tries) == (JobState.SCHEDULED, 1)


def test_a_commit_that_lands_late_is_waited_for(stage: Stage, remote: SqlStore, cutter: CommitCutter) -> None:
    """The second try queues for the worker's row: when it looks by the token, the first COMMIT is there."""
    stage.running(6)
    worker = stage.worker()
    cutter.cut(before=False, late=True)
    with pytest.raises(StoreLost, match="not confirmed"):
        remote.ledger.turn((), ClaimRequest(worker, "token", 2))
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(remote.ledger.turn, (), ClaimRequest(worker, "token", 2, retry=True))
        until(lambda: waits_for_a_row(stage), 10, "the second try waits")
        cutter.deliver()
        found = again.result(timeout=10)
    assert (len(found.claimed), found.claims) == (2, 1)
    assert stage.store.ledger.sending_of(worker) == sorted((job.id, job.attempt) for job in found.claimed)


def test_a_worker_does_not_end_while_its_commit_is_under_way(
    stage: Stage, remote: SqlStore, cutter: CommitCutter
) -> None:
    """Whoever buries it waits for the COMMIT, and finds the jobs that it brings."""
    stage.running(2)
    worker = stage.worker()
    cutter.cut(before=False, late=True)
    with pytest.raises(StoreLost):
        remote.ledger.turn((), ClaimRequest(worker, "token", 2))
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(stage.store.workers.end, worker, "buried")
        until(lambda: waits_for_a_row(stage), 10, "the end waits")
        cutter.deliver()
        with pytest.raises(RefusedByRule, match="still owns 2 jobs"):
            ending.result(timeout=10)
    assert len(stage.store.ledger.sending_of(worker)) == 2


def test_a_claim_that_waited_for_its_row_is_made(stage: Stage) -> None:
    """Somebody else wrote to the worker's row, and its count is as it was: a sign of life, say."""
    stage.running(2)
    worker = stage.worker()
    assert isinstance(stage.store, SqlStore)
    with ThreadPoolExecutor(1) as pool:
        with stage.store.database.writing() as tx:
            tx.exec_driver_sql("UPDATE workers SET seen_at = now() WHERE id = %s", (worker,))
            claim = pool.submit(stage.claim, worker)
            until(lambda: waits_for_a_row(stage), 10, "the claim waits")
        turn = claim.result(timeout=10)
    assert (len(turn.claimed), turn.claims) == (2, 1)


def waits_for_a_row(stage: Stage) -> bool:
    assert isinstance(stage.store, SqlStore)
    with stage.store.database.reading() as tx:
        return bool(tx.exec_driver_sql("SELECT 1 FROM pg_locks WHERE NOT granted").first())
