"""Writers that meet: real threads on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import Any
from uuid import uuid4

from sendonce.domain.engine.events import DeliveryEvent, EventKind, EventVerdict
from sendonce.domain.engine.jobs import ClaimRequest, JobState, Settlement
from sendonce.domain.engine.outcomes import Accepted
from sendonce.domain.mailouts.mailouts import MailoutStatus, PageEvent, Phase
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.domain.people.suppressions import SuppressionReason
from tests.conformance.backdoor import reports
from tests.conformance.stage import ACCEPTED, DEFERRED, DOUBTED, Stage, address, event_of, people


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Run the actions at the same moment; what each gave."""
    barrier = Barrier(len(actions))

    def act(action: Callable[[], Any]) -> Any:
        barrier.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(act, actions))


def settle(stage: Stage, *settlements: Settlement) -> Callable[[], Any]:
    return lambda: stage.store.ledger.turn(settlements, None)


def record(stage: Stage, event: DeliveryEvent) -> Callable[[], Any]:
    return lambda: stage.store.events.record(event)


def complete(stage: Stage, mailout_id: str) -> Callable[[], Any]:
    return lambda: stage.store.dispatches.complete(mailout_id)


def test_workers_claim_disjoint_jobs(meeting_stage: Stage) -> None:
    """Four workers that claim at once share the jobs: none is claimed twice, none is left."""
    meeting_stage.running(60)
    workers = [meeting_stage.worker() for _ in range(4)]

    def claim_all(worker: str) -> list[str]:
        claimed: list[str] = []
        claims = 0
        while True:
            turn = meeting_stage.store.ledger.turn((), ClaimRequest(worker, str(uuid4()), 4, claims))
            claims = turn.claims
            claimed += [job.id for job in turn.claimed]
            if not turn.claimed and not meeting_stage.store.jobs.count_by_state().get("scheduled"):
                return claimed

    groups = at_once(*(lambda w=w: claim_all(w) for w in workers))
    claimed = [job_id for group in groups for job_id in group]
    assert len(claimed) == len(set(claimed)) == 60


def test_only_one_of_many_starts(shared_stage: Stage) -> None:
    """Twenty callers press Send at once: one mailout starts, once."""
    mailout_id = shared_stage.mailout()
    started = at_once(*[lambda: shared_stage.store.mailouts.start(mailout_id)] * 20)
    assert started.count(True) == 1


def test_planners_that_meet_plan_each_recipient_once(shared_stage: Stage) -> None:
    """Two planners with leases of their own, and one that shares a name with the first."""
    mailout_id = shared_stage.started(40)

    def plan(name: str) -> int:
        added = 0
        while shared_stage.get(mailout_id).phase == Phase.PLANNING:
            progress = shared_stage.store.mailouts.plan_chunk(mailout_id, name, 6)
            added += progress.added if progress else 0
        return added

    added = at_once(lambda: plan("a"), lambda: plan("a"), lambda: plan("b"))
    assert sum(added) == shared_stage.store.jobs.books(mailout_id).planned == 40


def test_a_page_is_heard_while_its_mailout_is_planned(shared_stage: Stage) -> None:
    """Neither waits for what the other holds."""
    mailout_id = shared_stage.started(15)

    def hear() -> None:
        for _ in range(20):
            assert shared_stage.store.mailouts.hear(mailout_id, PageEvent(str(uuid4())))

    at_once(lambda: shared_stage.plan(mailout_id, size=1), hear, hear)
    assert shared_stage.store.jobs.books(mailout_id).planned == 15


def test_the_last_two_settle_at_once(shared_stage: Stage) -> None:
    """Each settles its last job, then completes: exactly one of them ends the mailout, with one report."""
    for _ in range(6):
        mailout_id = shared_stage.running(2)
        jobs = shared_stage.claim().claimed

        def finish(settlement: Settlement, mailout: str = mailout_id) -> MailoutStatus | None:
            shared_stage.store.ledger.turn([settlement], None)
            return shared_stage.store.dispatches.complete(mailout)

        outcomes = [Settlement(job.id, job.attempt, ACCEPTED) for job in jobs]
        ended = at_once(*(lambda o=o: finish(o) for o in outcomes))
        assert sorted(ended, key=str) == [None, MailoutStatus.SENT]
        assert [m for m, _ in reports(shared_stage.store)].count(mailout_id) == 1


def ended_with_nothing_open(stage: Stage, mailout_id: str) -> bool:
    return (
        stage.get(mailout_id).status == MailoutStatus.SENDING or not stage.store.jobs.books(mailout_id).open
    )


def test_a_deferral_races_the_completion(shared_stage: Stage) -> None:
    """A mailout is never over with a job scheduled, whoever comes first."""
    for _ in range(6):
        mailout_id = shared_stage.running(2)
        first, last = shared_stage.claim().claimed
        shared_stage.settle(first, ACCEPTED)
        deferral = Settlement(last.id, last.attempt, DEFERRED, retry_after=3600.0)
        at_once(settle(shared_stage, deferral), complete(shared_stage, mailout_id))
        assert ended_with_nothing_open(shared_stage, mailout_id)
        assert shared_stage.get(mailout_id).status == MailoutStatus.SENDING


def test_a_proof_of_absence_races_the_completion(shared_stage: Stage) -> None:
    """Before or after the end, the job that is scheduled again keeps or makes the mailout sending."""
    for _ in range(6):
        mailout_id = shared_stage.running(1)
        doubt = shared_stage.in_doubt()
        ref = [(doubt.id, doubt.attempt)]
        at_once(
            lambda ref=ref: shared_stage.store.ledger.prove_absence(ref, "no event"),
            complete(shared_stage, mailout_id),
        )
        assert shared_stage.get(mailout_id).status == MailoutStatus.SENDING
        shared_stage.settle(shared_stage.claim_one(), ACCEPTED)


def test_a_late_deferral_races_the_completion(shared_stage: Stage) -> None:
    """A worker that was given up tells that its letter never left, while the mailout ends without it."""
    for _ in range(6):
        mailout_id = shared_stage.running(1)
        doubt = shared_stage.in_doubt()
        late = Settlement(doubt.id, doubt.attempt, DEFERRED)
        at_once(settle(shared_stage, late), complete(shared_stage, mailout_id))
        assert shared_stage.get(mailout_id).status == MailoutStatus.SENDING
        shared_stage.settle(shared_stage.claim_one(), ACCEPTED)


def test_events_race_the_settle(meeting_stage: Stage) -> None:
    """The event of each letter comes while its whole group is settled: one acceptance, no lock in the way."""
    for _ in range(5):
        mailout_id = meeting_stage.running(4)
        jobs = meeting_stage.claim().claimed
        group = [Settlement(job.id, job.attempt, Accepted(f"provider-{job.attempt}")) for job in jobs[:3]]
        group.append(Settlement(jobs[3].id, jobs[3].attempt, DOUBTED))
        events = [event_of(job) for job in jobs]
        at_once(settle(meeting_stage, *group), *(record(meeting_stage, event) for event in events))
        books = meeting_stage.store.jobs.books(mailout_id)
        assert (books.sent, books.duplicates) == (4, 0)


def test_groups_of_two_mailouts_settle_at_once(meeting_stage: Stage) -> None:
    """Deferrals of the same mailouts in opposite orders wait in line and not for each other."""
    first, second = meeting_stage.running(4), meeting_stage.running(4)
    jobs = meeting_stage.claim().claimed
    deferrals = [Settlement(job.id, job.attempt, DEFERRED) for job in jobs]
    at_once(settle(meeting_stage, *deferrals[::2]), settle(meeting_stage, *reversed(deferrals[1::2])))
    assert [meeting_stage.store.jobs.books(m).scheduled for m in (first, second)] == [4, 4]


def test_the_same_event_comes_twice_at_once(meeting_stage: Stage) -> None:
    """Of two copies one is applied."""
    meeting_stage.running()
    event = event_of(meeting_stage.claim_one())
    verdicts = at_once(*[lambda: meeting_stage.store.events.record(event)] * 4)
    assert verdicts.count(EventVerdict.APPLIED) == 1
    assert verdicts.count(EventVerdict.DUPLICATE_EVENT) == 3


def test_a_bounce_and_a_complaint_come_at_once(meeting_stage: Stage) -> None:
    """The graver reason stands, whichever is written first."""
    stage = meeting_stage
    stage.running(5)
    for number, job in enumerate(stage.claim().claimed):
        kinds = (EventKind.BOUNCE, EventKind.COMPLAINT)
        at_once(*(record(stage, event_of(job, kind)) for kind in kinds))
        found = stage.store.suppressions.covers(DEFAULT_TENANT, address(number))
        assert found is not None
        assert found.reason == SuppressionReason.COMPLAINT


def test_an_operator_races_the_evidence(meeting_stage: Stage) -> None:
    """An operator says "not sent" while the worker's acceptance comes in: the letter is sent, once."""
    for _ in range(5):
        meeting_stage.running()
        doubt = meeting_stage.in_doubt()
        at_once(
            lambda doubt=doubt: meeting_stage.store.ledger.resolve(
                [doubt.id], sent=False, actor="jane", note=""
            ),
            settle(meeting_stage, Settlement(doubt.id, doubt.attempt, ACCEPTED)),
        )
        assert meeting_stage.state(doubt) == JobState.SENT
        assert meeting_stage.claim().claimed == ()


def test_cancel_races_claims_and_deferrals(meeting_stage: Stage) -> None:
    """Whatever was claimed or deferred in between, in the end nothing is scheduled and the books balance."""
    for _ in range(4):
        mailout_id = meeting_stage.running(6)
        job = meeting_stage.claim_one()
        worker = meeting_stage.worker()

        def cancel(mailout: str = mailout_id) -> None:
            meeting_stage.store.dispatches.cancel(mailout)
            while meeting_stage.store.dispatches.cancel_chunk(mailout, 2):
                pass

        deferral = settle(meeting_stage, Settlement(job.id, job.attempt, DEFERRED))
        claim = ClaimRequest(worker, str(uuid4()), 3)
        at_once(cancel, deferral, lambda c=claim: meeting_stage.store.ledger.turn((), c))
        for ref in meeting_stage.store.ledger.sending_of(worker):
            meeting_stage.store.ledger.turn([Settlement(*ref, DEFERRED)], None)
        cancel()  # a chunk that a claim snatched away is empty; the steward comes again
        books = meeting_stage.store.jobs.books(mailout_id)
        assert (books.skipped, books.open) == (6, 0)
        assert meeting_stage.store.dispatches.complete(mailout_id) == MailoutStatus.FAILED


def test_permits_are_never_given_out_twice(meeting_stage: Stage) -> None:
    """Three workers renew as fast as they can: at no moment do they hold more than the rate."""
    rate, rounds, lock = 7, 12, Lock()
    held = {str(uuid4()): 0 for _ in range(3)}
    highest: list[int] = []

    def renew(worker: str) -> None:
        for _ in range(rounds):
            share = meeting_stage.store.permits.renew("ses", worker, rate, held[worker])
            with lock:
                held[worker] = share
                highest.append(sum(held.values()))

    at_once(*(lambda w=w: renew(w) for w in held))
    for worker in [*held] * 4:  # whoever was first lets go of its surplus, and says so a round later
        held[worker] = meeting_stage.store.permits.renew("ses", worker, rate, held[worker])
        highest.append(sum(held.values()))
    assert max(highest) <= rate
    assert sum(held.values()) == rate


def test_imports_that_overlap(shared_stage: Stage) -> None:
    """Two imports of the same people in opposite orders both end, and nobody is there twice."""
    everybody = people(range(200))

    def upsert(some: Sequence[Any]) -> Callable[[], Any]:
        return lambda: shared_stage.store.subscribers.upsert(DEFAULT_TENANT, some)

    at_once(upsert(everybody), upsert(everybody[::-1]), upsert(everybody[50:150]))
    assert shared_stage.store.subscribers.count(DEFAULT_TENANT) == {"active": 200}
