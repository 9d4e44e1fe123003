"""Which jobs are claimed, by whom, and how a claim is found again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest

from sendonce.adapters.stores.sql.store import SqlStore
from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.jobs import ClaimedJob, ClaimRequest, JobState, Settlement
from sendonce.domain.people.subscribers import DEFAULT_TENANT, NewSubscriber
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from sendonce.ports.engine import QuickTurns
from tests.conformance.backdoor import put_off
from tests.conformance.stage import ACCEPTED, DEFERRED, NOBODY, Stage, address


def test_a_claim_takes_up_to_its_limit(stage: Stage) -> None:
    """Each job is claimed once, in groups no larger than asked for."""
    stage.running(5)
    groups = [stage.claim(limit=2).claimed for _ in range(4)]
    assert [len(group) for group in groups] == [2, 2, 1, 0]
    assert len({job.id for group in groups for job in group}) == 5


def test_a_job_that_comes_due_before_the_last_claimed_one_is_found(stage: Stage) -> None:
    """A store may begin where the last claim ended, but it must not pass by what came in before."""
    mailout_id = stage.running(3)
    stage.claim(limit=2)
    left = stage.store.jobs.next_due(mailout_id)
    assert left is not None
    put_off(stage.store, left.id, timedelta(hours=-1))
    assert [job.id for job in stage.claim(limit=2).claimed] == [left.id]


def test_a_claim_is_written_down(stage: Stage) -> None:
    """The row tells who claimed it, when, and which attempt this is."""
    stage.running()
    worker = stage.worker()
    claimed = stage.claim_one(worker)
    job = stage.job(claimed)
    assert (job.state, job.attempt, job.worker_id) == (JobState.SENDING, 1, worker)
    assert job.claimed_at == claimed.claimed_at
    assert stage.store.ledger.oldest_claim() == claimed.claimed_at
    assert stage.store.ledger.sending_of(worker) == [(job.id, 1)]


def test_the_claim_sequence_only_rises(stage: Stage) -> None:
    """Every claim has a higher number than the last, and the ledger's identity tells the highest."""
    stage.running(3)
    numbers = [stage.claim(limit=1).claim_seq for _ in range(3)]
    assert numbers == sorted(set(numbers))
    assert stage.store.ledger.identity().claim_seq == numbers[-1]


def test_an_empty_claim_uses_no_number(stage: Stage) -> None:
    """Where nothing was claimed there is no claim number."""
    assert stage.claim().claim_seq == 0


def test_a_paused_mailout_is_left_alone(stage: Stage) -> None:
    """Pause stops claims at once; resume lets them go on."""
    mailout_id = stage.running(2)
    assert stage.store.dispatches.set_paused(mailout_id, True)
    assert stage.claim().claimed == ()
    assert stage.store.dispatches.set_paused(mailout_id, False)
    assert len(stage.claim().claimed) == 2


def test_a_cancelled_mailout_is_left_alone(stage: Stage) -> None:
    """Cancel stops claims before a single job is skipped."""
    mailout_id = stage.running(2)
    assert stage.store.dispatches.cancel(mailout_id)
    assert stage.claim().claimed == ()


def test_a_job_that_is_not_due_waits(stage: Stage) -> None:
    """A deferred job is claimed after its time and not before."""
    stage.running()
    job = stage.claim_one()
    stage.settle(job, DEFERRED, retry_after=3600.0)
    assert stage.claim().claimed == ()
    waiting = stage.job(job)
    assert stage.store.jobs.oldest_due() == waiting.due_at
    assert (waiting.due_at - job.claimed_at).total_seconds() == pytest.approx(3600, abs=60)


def test_due_jobs_come_in_the_order_of_their_time(stage: Stage) -> None:
    """What has waited longest goes first."""
    stage.running(3)
    first, *_ = stage.claim().claimed
    stage.settle(first, DEFERRED)
    for job in stage.store.jobs.list(states=[JobState.SENDING]):
        stage.settle(job, DEFERRED)
    assert stage.claim(limit=1).claimed[0].id == first.id


@pytest.mark.parametrize("scope", [DEFAULT_TENANT, EVERYBODY])
def test_the_suppressed_are_skipped_by_the_claim(stage: Stage, scope: str) -> None:
    """A suppression of the tenant or of everybody, added after planning, is honoured by the next claim."""
    mailout_id = stage.running(2)
    stage.store.suppressions.add(scope, address(0), SuppressionReason.MANUAL)
    turn = stage.claim()
    assert [job.recipient for job in turn.claimed] == [address(1).text]
    assert turn.skipped == 1
    assert stage.store.jobs.books(mailout_id).skipped == 1


def test_another_tenants_suppression_does_not_count(stage: Stage) -> None:
    """A suppression of one tenant says nothing about the letters of another."""
    stage.running()
    stage.store.suppressions.add("somebody-else", address(0), SuppressionReason.MANUAL)
    assert len(stage.claim().claimed) == 1


@pytest.mark.parametrize(
    ("suppressed", "subscribed"),
    [
        ("jane.doe@gmail.com", "janedoe@gmail.com"),
        ("janedoe@googlemail.com", "jane.doe@gmail.com"),
        ("jane@example.com", "jane+news@example.com"),
        ("jane+shop@example.com", "Jane@Example.com"),
    ],
)
def test_another_spelling_of_a_suppressed_mailbox_is_skipped(
    stage: Stage, suppressed: str, subscribed: str
) -> None:
    """Dots of Gmail, plus tags and case do not get around a suppression."""
    stage.store.subscribers.upsert(DEFAULT_TENANT, [NewSubscriber(parse_address(subscribed))])
    stage.running(0)
    stage.store.suppressions.add(EVERYBODY, parse_address(suppressed), SuppressionReason.MANUAL)
    turn = stage.claim()
    assert (turn.claimed, turn.skipped) == ((), 1)


def test_an_unsubscription_after_a_deferral_is_honoured(stage: Stage) -> None:
    """The suppression is looked up at each claim, not only at the first."""
    stage.running()
    job = stage.claim_one()
    stage.settle(job, DEFERRED)
    stage.store.suppressions.unsubscribe(job.id)
    assert stage.claim().skipped == 1
    assert stage.job(job).reason == "suppressed"


def test_mailouts_share_the_worker(stage: Stage) -> None:
    """Two mailouts are both served by small claims."""
    first, second = stage.running(4), stage.running(4)
    served = {stage.claim(limit=1).claimed[0].dispatch_id for _ in range(8)}
    assert served == {first, second}


def test_a_claim_whose_answer_was_lost_is_found_by_its_token(stage: Stage) -> None:
    """Asked again with the same token, a claim gives the same jobs and claims nothing new."""
    stage.running(5)
    worker, token = stage.worker(), str(uuid4())
    lost = stage.claim(worker, limit=2, token=token)
    found = stage.claim(worker, limit=2, token=token, retry=True)
    assert {(j.id, j.attempt) for j in found.claimed} == {(j.id, j.attempt) for j in lost.claimed}
    assert {j.claimed_at for j in found.claimed} == {j.claimed_at for j in lost.claimed}
    assert len(stage.store.jobs.list(states=[JobState.SENDING])) == 2


def test_a_claim_that_was_never_committed_is_made_by_the_retry(stage: Stage) -> None:
    """When the first claim did not happen, the retry claims."""
    stage.running(5)
    assert len(stage.claim(limit=2, retry=True).claimed) == 2


def test_the_retry_leaves_out_what_was_settled_since(stage: Stage) -> None:
    """A job of the lost claim that an event has settled is not sent again."""
    stage.running(2)
    worker, token = stage.worker(), str(uuid4())
    first, second = stage.claim(worker, limit=2, token=token).claimed
    stage.event(first)
    found = stage.claim(worker, limit=2, token=token, retry=True).claimed
    assert [job.id for job in found] == [second.id]


def test_settling_and_claiming_share_a_turn(stage: Stage) -> None:
    """One turn settles the last group and claims the next."""
    stage.running(2)
    worker = stage.worker()
    first = stage.claim_one(worker)
    turn = stage.store.ledger.turn(
        [Settlement(first.id, first.attempt, ACCEPTED)], ClaimRequest(worker, "token", 1, claims=1)
    )
    assert turn.settled == 1
    assert len(turn.claimed) == 1
    assert stage.state(first) == JobState.SENT


STOPS: dict[str, Callable[[Stage, ClaimedJob], object]] = {
    "unsubscribed": lambda stage, job: stage.store.suppressions.unsubscribe(job.id),
    "paused": lambda stage, job: stage.store.dispatches.set_paused(job.dispatch_id, True),
    "cancelled": lambda stage, job: stage.store.dispatches.cancel(job.dispatch_id),
    "fenced": lambda stage, job: stage.store.ledger.fence("ses", stage.store.ledger.now(), "expired"),
    "halted": lambda stage, job: stage.store.ledger.halt("restored"),
    "accepted before": lambda stage, job: stage.event(job, attempt=1),
    "settled": lambda stage, job: stage.settle(job, ACCEPTED),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_claimed_letter_is_asked_for_again_before_it_leaves(stage: Stage, stop: str) -> None:
    """What has come in since the claim, an opt-out or a pause, keeps the letter from leaving."""
    stage.running()
    job = stage.second_attempt()
    assert stage.store.ledger.reaffirm(job.id, job.attempt)
    assert not stage.store.ledger.reaffirm(job.id, job.attempt - 1)
    STOPS[stop](stage, job)
    assert not stage.store.ledger.reaffirm(job.id, job.attempt)


def test_jobs_can_be_listed_and_paged(stage: Stage) -> None:
    """Lists go by id, state, mailout and worker, and continue after an id."""
    mailout_id = stage.running(5)
    worker = stage.worker()
    stage.claim(worker, limit=2)
    everything = stage.store.jobs.list(dispatch_id=mailout_id)
    assert [job.id for job in everything] == sorted(job.id for job in everything)
    rest = stage.store.jobs.list(dispatch_id=mailout_id, after=everything[1].id, limit=2)
    assert [job.id for job in rest] == [job.id for job in everything[2:4]]
    assert len(stage.store.jobs.list(worker_id=worker)) == 2
    assert stage.store.jobs.count_by_state() == {"scheduled": 3, "sending": 2}


@pytest.mark.parametrize("name", ["nonsense", "", "00000000-0000-0000-0000-00000000000g", NOBODY])
def test_an_unknown_name_is_no_row_and_no_error(stage: Stage, name: str) -> None:
    """Ids come from outside: one that means nothing finds nothing."""
    stage.running()
    store = stage.store
    assert store.jobs.get(name) is None
    assert store.mailouts.get(DEFAULT_TENANT, name) is None
    assert store.suppressions.unsubscribe(name) is None
    assert store.suppressions.resubscribe(name) is None
    assert store.ledger.resolve([name], sent=True, actor="jane", note="") == 0
    assert store.ledger.retry([name], "jane") == 0
    assert not store.mailouts.start(name)
    assert not store.dispatches.cancel(name)
    assert store.dispatches.complete(name) is None


def test_nothing_is_claimed_by_a_clock_that_has_jumped_ahead(stage: Stage) -> None:
    """What is settled in the same turn counts all the same."""
    stage.running(2)
    worker = stage.worker()
    job = stage.claim_one(worker)
    now = stage.store.ledger.now()
    settlement = Settlement(job.id, job.attempt, ACCEPTED)
    early = ClaimRequest(worker, str(uuid4()), 5, 1, not_after=now - timedelta(seconds=1))
    turn = stage.store.ledger.turn([settlement], early)
    assert (turn.settled, turn.claimed) == (1, ())
    assert turn.now is not None
    assert turn.now >= now
    in_time = ClaimRequest(worker, str(uuid4()), 5, turn.claims, not_after=now + timedelta(minutes=1))
    assert len(stage.store.ledger.turn((), in_time).claimed) == 1


def test_quick_turns_are_for_a_store_within_the_process(stage: Stage) -> None:
    """Where there is a server to wait for, or no disk, the engine finds no such capability."""
    store = stage.store
    has_file = isinstance(store, SqlStore) and store.database.is_sqlite
    assert isinstance(store.ledger, QuickTurns) == has_file
