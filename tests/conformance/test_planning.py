"""Starting and planning a mailout: one job a recipient, whatever happens in between."""

from __future__ import annotations

from sendonce.domain.engine.jobs import JobState
from sendonce.domain.mailouts.mailouts import MailoutStatus, Phase
from sendonce.domain.people.suppressions import EVERYBODY, SuppressionReason
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import LETTER, Stage, address


def test_start_happens_once(stage: Stage) -> None:
    """A ready mailout starts for the first caller only."""
    mailout_id = stage.mailout()
    assert [stage.store.mailouts.start(mailout_id) for _ in range(3)] == [True, False, False]
    assert stage.get(mailout_id).phase == Phase.PLANNING


def test_a_draft_does_not_start(stage: Stage) -> None:
    """Only a ready mailout starts; a draft becomes ready once, and nothing else does."""
    mailouts, draft = stage.store.mailouts, stage.new_mailout(draft=True).id
    assert not mailouts.start(draft)
    assert [mailouts.make_ready(draft) for _ in range(2)] == [True, False]
    assert mailouts.start(draft)
    assert not mailouts.make_ready(draft)
    assert stage.get(draft).status == MailoutStatus.SENDING
    cancelled = stage.new_mailout(draft=True).id
    stage.store.dispatches.cancel(cancelled)
    assert not mailouts.make_ready(cancelled)


def test_one_job_a_recipient(stage: Stage) -> None:
    """Chunks of any size plan each active subscriber once."""
    mailout_id = stage.started(7)
    stage.plan(mailout_id, size=2)
    recipients = [job.recipient for job in stage.store.jobs.list(dispatch_id=mailout_id)]
    assert sorted(recipients) == [address(n).text for n in range(7)]


def test_planning_goes_on_after_a_crash_in_any_chunk(stage: Stage) -> None:
    """A planner that dies after any chunk leaves the rest, and only the rest, to the next one."""
    for chunks in range(4):
        mailout_id = stage.started(7)
        for _ in range(chunks):
            stage.plan_once(mailout_id, 2, planner="dies")
        pass_time(stage.store, 31)
        while not stage.plan_once(mailout_id, 2, planner="heir"):
            pass
        assert stage.store.jobs.books(mailout_id).planned == 7


def test_a_second_planner_waits(stage: Stage) -> None:
    """While one planner holds the lease, another gets nothing to do."""
    mailout_id = stage.started(5)
    assert stage.store.mailouts.plan_chunk(mailout_id, "first", 2) is not None
    assert stage.store.mailouts.plan_chunk(mailout_id, "second", 2) is None


def test_planning_twice_adds_nothing(stage: Stage) -> None:
    """A planned mailout cannot be planned again."""
    mailout_id = stage.running(3)
    assert stage.store.mailouts.plan_chunk(mailout_id, "planner", 10) is None
    assert stage.store.jobs.books(mailout_id).planned == 3


def test_a_subscriber_who_comes_while_it_is_planned(stage: Stage) -> None:
    """Somebody added behind the cursor is planned, somebody added before it is not, nobody is twice."""
    stage.subscribe([10, 20, 30])
    mailout_id = stage.mailout()
    stage.store.mailouts.start(mailout_id)
    stage.plan_once(mailout_id, 2)
    stage.subscribe([5, 10, 40])
    stage.plan(mailout_id, 2)
    planned = sorted(job.recipient for job in stage.store.jobs.list(dispatch_id=mailout_id))
    assert planned == [address(n).text for n in (10, 20, 30, 40)]


def test_only_active_subscribers_are_planned(stage: Stage) -> None:
    """People who unsubscribed or bounced get no job."""
    first = stage.running(3)
    stage.store.suppressions.unsubscribe(stage.store.jobs.list(dispatch_id=first)[0].id)
    second = stage.running(3)
    assert stage.store.jobs.books(second).planned == 2


def test_the_suppressed_are_planned_as_skipped(stage: Stage) -> None:
    """An active subscriber who is suppressed is in the books, as skipped."""
    stage.subscribe(range(2))
    stage.store.suppressions.add(EVERYBODY, address(0), SuppressionReason.MANUAL)
    mailout_id = stage.running(2)
    books = stage.store.jobs.books(mailout_id)
    assert (books.planned, books.skipped, books.scheduled) == (2, 1, 1)
    (skipped,) = stage.store.jobs.list(states=[JobState.SKIPPED])
    assert skipped.reason == "suppressed"


def test_the_job_carries_the_fields_of_its_letter(stage: Stage) -> None:
    """Name and attributes are frozen into the job when it is planned."""
    mailout_id = stage.running(1)
    assert stage.store.mailouts.letter(mailout_id) == LETTER
    assert stage.claim_one().fields == {"name": "User 0"}


def test_nothing_is_claimed_while_it_is_planned(stage: Stage) -> None:
    """Jobs of a half-planned mailout wait for the rest."""
    mailout_id = stage.started(5)
    stage.plan_once(mailout_id, 2)
    assert stage.claim().claimed == ()
    assert stage.store.jobs.oldest_due() is None


def test_a_preflight_stop_goes_back_to_ready(stage: Stage) -> None:
    """A mailout stopped before its first job is ready again, with the reason, and can be started."""
    mailout_id = stage.started(2)
    assert stage.store.mailouts.stop_before_first(mailout_id, "no footer")
    assert stage.get(mailout_id).status == MailoutStatus.READY
    assert stage.get(mailout_id).reason == "no footer"
    assert stage.store.mailouts.start(mailout_id)
    assert stage.get(mailout_id).reason is None


def test_no_stop_after_the_first_job(stage: Stage) -> None:
    """Once a job is planned there is no way back to ready."""
    mailout_id = stage.started(3)
    stage.plan_once(mailout_id, 1)
    assert not stage.store.mailouts.stop_before_first(mailout_id, "too late")


def test_a_mailout_to_nobody_is_sent(stage: Stage) -> None:
    """With no subscribers there is nothing to fail."""
    mailout_id = stage.running(0)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT


def test_lists_of_mailouts(stage: Stage) -> None:
    """All mailouts come newest first, and can be asked for by status."""
    first, second = stage.mailout(), stage.mailout()
    stage.store.mailouts.start(first)
    assert {m.id for m in stage.store.mailouts.of_all_tenants()} == {first, second}
    assert [m.id for m in stage.store.mailouts.with_status(MailoutStatus.SENDING)] == [first]
    assert len(stage.store.mailouts.of_all_tenants(limit=1)) == 1
