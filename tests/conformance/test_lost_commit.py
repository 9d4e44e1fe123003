"""The reply to a COMMIT is lost: nothing is sent, and the claim is found again by its token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from sendonce.adapters.stores.sql.store import SqlStore, open_store
from sendonce.domain.jobs import ClaimRequest, JobState, Settlement
from sendonce.errors import StoreLost
from tests.conformance.commit_cutter import CommitCutter
from tests.conformance.stage import ACCEPTED, DEFERRED, Stage


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
        remote.ledger.turn(settlements, ClaimRequest(worker, "token", 2))
    turn = remote.ledger.turn(settlements, ClaimRequest(worker, "token", 2, retry=True))
    assert len(turn.claimed) == 2
    assert stage.state(accepted) == JobState.SENT
    assert (stage.state(deferred), stage.job(deferred).tries) == (JobState.SCHEDULED, 1)
