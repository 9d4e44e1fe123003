"""Completion, pause and cancel: a mailout ends when nothing is open, and reports it once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sendonce.adapters.archive.directory import DirectoryArchive
from sendonce.adapters.files.reports import ReportFolder
from sendonce.domain.engine.dispatches import PLANNED_WITHIN, Dispatch, DispatchPhase, NewDispatch, NewJob
from sendonce.domain.engine.jobs import JobState
from sendonce.domain.engine.outcomes import Outcome
from sendonce.domain.mailouts.mailouts import MailoutStatus, Phase
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import Unavailable
from sendonce.flows.engine.finish_dispatches import Finisher
from sendonce.flows.mailouts.write_due_reports import TOPIC, write_due_reports
from sendonce.ports.store import Store
from tests.conformance.backdoor import audit, pass_time, put_off, reports
from tests.conformance.stage import ACCEPTED, DEFERRED, REFUSED, THROTTLED, Stage, address


def test_a_mailout_is_not_over_while_a_job_is_open(stage: Stage) -> None:
    """Scheduled and sending jobs keep it sending."""
    mailout_id = stage.running(2)
    assert stage.store.dispatches.complete(mailout_id) is None
    first = stage.claim_one()
    stage.settle(first, ACCEPTED)
    assert stage.store.dispatches.complete(mailout_id) is None
    second = stage.claim_one()
    assert stage.store.dispatches.complete(mailout_id) is None
    stage.settle(second, ACCEPTED)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT
    assert stage.get(mailout_id).phase == Phase.OVER
    assert stage.get(mailout_id).sent_at is not None


def test_a_mailout_that_is_planned_is_not_over(stage: Stage) -> None:
    """Before the last chunk, jobs that are not there yet are open too."""
    mailout_id = stage.started(3)
    assert stage.store.dispatches.complete(mailout_id) is None


def test_the_report_is_in_the_outbox_once(stage: Stage) -> None:
    """Who completes second completes nothing."""
    mailout_id = stage.running()
    stage.settle(stage.claim_one(), ACCEPTED)
    assert [stage.store.dispatches.complete(mailout_id) for _ in range(3)] == [MailoutStatus.SENT, None, None]
    assert reports(stage.store) == [(mailout_id, "sent")]


@pytest.mark.parametrize("outcome", [REFUSED, DEFERRED])
def test_nothing_accepted_is_a_failure(stage: Stage, outcome: Outcome) -> None:
    """A mailout that ends with nothing accepted, and nothing that may have been, has failed."""
    mailout_id = stage.running()
    stage.settle(stage.claim_one(), outcome, exhausted=True)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.FAILED
    assert reports(stage.store) == [(mailout_id, "failed")]


def test_doubt_does_not_block_the_end(stage: Stage) -> None:
    """A letter in doubt may have been accepted: the mailout is sent, and the books show the doubt."""
    mailout_id = stage.running()
    stage.in_doubt()
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT
    assert stage.store.jobs.books(mailout_id).in_doubt == 1


def test_cancel_skips_what_is_scheduled(stage: Stage) -> None:
    """In chunks, and only what is not on the wire."""
    mailout_id = stage.running(5)
    on_the_wire = stage.claim_one()
    assert stage.store.dispatches.cancel(mailout_id)
    assert [stage.store.dispatches.cancel_chunk(mailout_id, 3) for _ in range(3)] == [3, 1, 0]
    assert stage.store.jobs.books(mailout_id).skipped == 4
    assert stage.store.dispatches.complete(mailout_id) is None
    stage.settle(on_the_wire, ACCEPTED)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT
    skipped = stage.store.jobs.list(states=[JobState.SKIPPED])
    assert {job.reason for job in skipped} == {"cancelled"}


def test_single_jobs_are_taken_back(stage: Stage) -> None:
    """Only what is scheduled, only of the dispatch that is named, and with the reason; the books know."""
    mailout_id = stage.running(3)
    on_the_wire = stage.claim_one()
    waiting = [job.id for job in stage.store.jobs.list(states=[JobState.SCHEDULED])]
    take_back = stage.store.dispatches.take_back
    assert take_back(stage.mailout(), waiting, "no") == 0
    assert take_back(mailout_id, [on_the_wire.id, waiting[0]], "no") == 1
    assert take_back(mailout_id, [waiting[0]], "again") == 0
    books = stage.store.jobs.books(mailout_id)
    assert (books.scheduled, books.sending, books.skipped) == (1, 1, 1)
    assert [(it.id, it.reason) for it in stage.store.jobs.list(states=[JobState.SKIPPED])] == [
        (waiting[0], "no")
    ]
    stage.check_books()
    assert take_back(mailout_id, waiting, "no") == 1
    stage.settle(on_the_wire, ACCEPTED)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT


def test_nothing_is_skipped_unless_cancelled(stage: Stage) -> None:
    """A chunk of a mailout that goes on skips nothing."""
    mailout_id = stage.running(2)
    assert stage.store.dispatches.cancel_chunk(mailout_id, 10) == 0


def test_cancel_is_final(stage: Stage) -> None:
    """It happens once, is in the audit log, and there is no pause or resume afterwards."""
    mailout_id = stage.running(1)
    assert [stage.store.dispatches.cancel(mailout_id) for _ in range(2)] == [True, False]
    assert not stage.store.dispatches.set_paused(mailout_id, False)
    assert [entry[1] for entry in audit(stage.store)] == ["cancel"]


def test_a_mailout_cancelled_before_its_start_has_failed(stage: Stage) -> None:
    """It never starts."""
    mailout_id = stage.mailout()
    assert stage.store.dispatches.cancel(mailout_id)
    assert stage.get(mailout_id).status == MailoutStatus.FAILED
    assert not stage.store.mailouts.start(mailout_id)


def test_a_mailout_cancelled_while_it_is_planned_plans_no_more(stage: Stage) -> None:
    """What is planned is skipped, the rest is never planned, and the mailout ends."""
    mailout_id = stage.started(5)
    stage.plan_once(mailout_id, 2)
    stage.store.dispatches.cancel(mailout_id)
    stage.plan(mailout_id, 2)
    while stage.store.dispatches.cancel_chunk(mailout_id, 10):
        pass
    assert stage.store.jobs.books(mailout_id).planned == 2
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.FAILED


@pytest.mark.parametrize("outcome", [DEFERRED, THROTTLED])
def test_a_deferral_after_cancel_is_skipped(stage: Stage, outcome: Outcome) -> None:
    """Cancel came while the letter was on the wire: "not now" becomes never."""
    mailout_id = stage.running()
    job = stage.claim_one()
    stage.store.dispatches.cancel(mailout_id)
    stage.settle(job, outcome)
    assert (stage.state(job), stage.job(job).reason) == (JobState.SKIPPED, "cancelled")


def test_a_cancelled_doubt_that_is_proven_absent_is_skipped(stage: Stage) -> None:
    """Both proofs, but nobody wants the letter any more."""
    mailout_id = stage.running()
    doubt = stage.in_doubt()
    stage.store.dispatches.cancel(mailout_id)
    stage.store.ledger.prove_absence([(doubt.id, doubt.attempt)], "no event")
    assert stage.state(doubt) == JobState.SKIPPED


def test_a_cancelled_doubt_resolved_as_not_sent_is_skipped(stage: Stage) -> None:
    """An operator's word does not undo a cancellation either."""
    mailout_id = stage.running()
    doubt = stage.in_doubt()
    stage.store.dispatches.cancel(mailout_id)
    stage.store.ledger.resolve([doubt.id], sent=False, actor="jane", note="")
    assert stage.state(doubt) == JobState.SKIPPED


def test_evidence_after_cancel_counts(stage: Stage) -> None:
    """A letter that left is sent, cancelled or not."""
    mailout_id = stage.running()
    doubt = stage.in_doubt()
    stage.store.dispatches.cancel(mailout_id)
    stage.store.ledger.resolve([doubt.id], sent=False, actor="jane", note="")
    stage.event(doubt)
    assert stage.state(doubt) == JobState.SENT


def test_only_a_started_mailout_is_paused(stage: Stage) -> None:
    """There is nothing to pause in a ready or finished one."""
    ready, running = stage.mailout(), stage.running(0)
    assert not stage.store.dispatches.set_paused(ready, True)
    stage.store.dispatches.complete(running)
    assert not stage.store.dispatches.set_paused(running, True)


def test_a_paused_mailout_can_end(stage: Stage) -> None:
    """Pause keeps letters from leaving, not outcomes from coming."""
    mailout_id = stage.running()
    job = stage.claim_one()
    stage.store.dispatches.set_paused(mailout_id, True)
    stage.settle(job, ACCEPTED)
    assert stage.store.dispatches.complete(mailout_id) == MailoutStatus.SENT


def test_an_entry_of_the_outbox_is_due_until_it_is_done(stage: Stage) -> None:
    """Whoever carries it out says so, and nobody gets it again."""
    mailout_id = stage.running(0)
    stage.store.dispatches.complete(mailout_id)
    [(entry, body)] = stage.store.outbox.due("mailout.ended", 10)
    assert body == {"dispatch_id": mailout_id, "owner_id": mailout_id, "result": "sent"}
    assert stage.store.outbox.due("another topic", 10) == []
    stage.store.outbox.done(entry)
    assert stage.store.outbox.due("mailout.ended", 10) == []


def test_letters_that_a_wrong_clock_put_off_for_years_are_due_again(stage: Stage) -> None:
    """Planned and put off by a clock years ahead. Once it is right, they leave and the mailout ends."""
    stage.running(2)
    usual = stage.claim_one()
    stage.settle(usual, DEFERRED)
    put_off(stage.store, usual.id, timedelta(hours=3))
    (lost,) = [job for job in stage.store.jobs.list() if job.id != usual.id]
    put_off(stage.store, lost.id, timedelta(days=3650))
    Finisher(stage.store, lambda: False, longest_retry=14_400).run()
    assert [job.id for job in stage.claim().claimed] == [lost.id]


def test_a_dispatch_that_its_door_left_half_planned_runs(stage: Stage) -> None:
    """The process that planned was killed. What it had planned leaves; what had nothing planned is over."""
    store = stage.store
    planned = store.dispatches.open(DEFAULT_TENANT, NewDispatch("confirmation", "planned"))
    empty = store.dispatches.open(DEFAULT_TENANT, NewDispatch("confirmation", "empty"))
    pass_time(store, PLANNED_WITHIN.total_seconds() - 60)
    store.dispatches.plan(planned.id, [NewJob(address(0))])
    pass_time(store, 120)
    Finisher(store, lambda: False, longest_retry=14_400).run()
    assert phases(store, planned, empty) == [DispatchPhase.PLANNING, DispatchPhase.OVER]
    pass_time(store, PLANNED_WITHIN.total_seconds())
    Finisher(store, lambda: False, longest_retry=14_400).run()
    assert stage.claim_one().dispatch_id == planned.id
    assert store.dispatches.abandoned() == []


def test_a_mailout_that_is_being_planned_is_left_to_its_planner(stage: Stage) -> None:
    mailout_id = stage.started(2)
    stage.plan_once(mailout_id, 1)
    pass_time(stage.store, PLANNED_WITHIN.total_seconds() + 60)
    assert stage.store.dispatches.abandoned() == []


def phases(store: Store, *dispatches: Dispatch) -> list[DispatchPhase]:
    found = [store.dispatches.get(dispatch.id) for dispatch in dispatches]
    return [dispatch.phase for dispatch in found if dispatch]


def test_a_time_that_a_door_chose_stands_however_far_ahead(stage: Stage) -> None:
    """Also beside a letter of the same dispatch that a wrong clock put off after its first try."""
    store = stage.store
    dispatch = store.dispatches.open(DEFAULT_TENANT, NewDispatch("step", "owner"))
    next_year = store.ledger.now() + timedelta(days=365)
    jobs = [NewJob(address(0), due_at=store.ledger.now()), NewJob(address(1), due_at=next_year)]
    store.dispatches.plan(dispatch.id, jobs)
    store.dispatches.run(dispatch.id)
    tried = stage.claim_one()
    stage.settle(tried, DEFERRED)
    put_off(store, tried.id, timedelta(days=3650))
    Finisher(store, lambda: False, longest_retry=14_400).run()
    assert [job.id for job in stage.claim().claimed] == [tried.id]
    (waiting,) = store.jobs.list(states=[JobState.SCHEDULED])
    assert waiting.due_at == next_year


def test_a_report_is_copied_to_the_archive_before_it_counts_as_written(stage: Stage, tmp_path: Path) -> None:
    """A bucket that does not answer is asked again; then the copy is what the file is."""
    mailout_id = stage.running()
    stage.settle(stage.claim_one(), ACCEPTED)
    stage.store.dispatches.complete(mailout_id)
    files, blocked = ReportFolder(tmp_path / "reports"), tmp_path / "blocked"
    blocked.write_text("a file is no directory")
    with pytest.raises(Unavailable):
        write_due_reports(stage.store, files, DirectoryArchive(blocked))
    kept = DirectoryArchive(tmp_path / "archive")
    write_due_reports(stage.store, files, kept)
    (copy,) = (tmp_path / "archive").rglob("*.gz")
    assert kept.read(str(copy)) == files.read(mailout_id)
    assert stage.store.outbox.due(TOPIC, 1) == []
