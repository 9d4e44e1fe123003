"""Why a mailout stands still, how fast it goes, and who is at work: told from what the store knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from sendonce.domain.engine.senders import HoldOrder, SenderKeys
from sendonce.domain.engine.workers import SILENT_AFTER, Pulse, Rest
from sendonce.domain.mailouts.progress import Cause, Progress
from sendonce.flows.mailouts.explain_progress import explain_progress
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import ACCEPTED, DEFERRED, NOBODY, Stage, worker_record

KEY = "ses/eu-central-1/news@example.com"


def progress_of(stage: Stage, mailout_id: str) -> Progress:
    books = stage.store.jobs.books(mailout_id)
    return explain_progress(stage.store, stage.get(mailout_id), books, lambda _: SenderKeys(KEY))


def cause_of(stage: Stage, mailout_id: str) -> Cause | None:
    standstill = progress_of(stage, mailout_id).standstill
    return standstill.cause if standstill else None


def test_what_moves_has_no_cause_to_stand_still(stage: Stage) -> None:
    """With a worker at work and letters due there is nothing to explain."""
    mailout_id = stage.running(3)
    stage.worker()
    progress = progress_of(stage, mailout_id)
    assert (progress.standstill, progress.workers) == (None, 1)


def test_without_a_worker_nothing_moves(stage: Stage) -> None:
    """A worker that has left is none."""
    mailout_id = stage.running()
    worker = stage.worker()
    stage.store.workers.end(worker, "left")
    standstill = progress_of(stage, mailout_id).standstill
    assert standstill is not None
    assert (standstill.cause, standstill.fix) == (Cause.NO_WORKER, "Start one: sendonce worker")


def test_a_worker_that_is_silent_is_not_at_work(stage: Stage) -> None:
    """It may have been killed: nobody has found it dead yet."""
    mailout_id = stage.running()
    stage.worker()
    pass_time(stage.store, SILENT_AFTER.total_seconds())
    assert (cause_of(stage, mailout_id), progress_of(stage, mailout_id).workers) == (Cause.NO_WORKER, 0)


def test_a_held_sender_is_told_with_its_reason_and_the_next_try(stage: Stage) -> None:
    """The sender that the mailout leaves from counts, and no other."""
    mailout_id = stage.running()
    stage.worker()
    stage.store.sender_holds.hold("ses/eu-central-1/other@example.com", HoldOrder("x", "other", 60.0))
    assert cause_of(stage, mailout_id) is None
    hold = stage.store.sender_holds.hold(KEY, HoldOrder("AccountSuspended", "suspended by Amazon", 60.0))
    standstill = progress_of(stage, mailout_id).standstill
    assert standstill is not None
    assert (standstill.cause, standstill.next_try_at) == (Cause.HELD, hold.next_try_at)
    assert "suspended by Amazon" in standstill.detail
    assert f"sendonce sender release {KEY}" in standstill.fix


def test_letters_that_wait_for_another_try_tell_until_when_and_why(stage: Stage) -> None:
    mailout_id = stage.running()
    job = stage.claim_one()
    stage.settle(job, DEFERRED, retry_after=3600.0)
    standstill = progress_of(stage, mailout_id).standstill
    assert standstill is not None
    assert (standstill.cause, standstill.next_try_at) == (Cause.RETRY, stage.job(job).due_at)
    assert standstill.detail == "1 letter waits for another try: not now"


def test_a_letter_on_the_wire_is_no_standstill(stage: Stage) -> None:
    """One waits for its retry, another is on its way."""
    mailout_id = stage.running(2)
    stage.settle(stage.claim_one(), DEFERRED, retry_after=3600.0)
    stage.claim_one()
    assert cause_of(stage, mailout_id) is None


@pytest.mark.parametrize("rest", list(Rest))
def test_workers_that_rest_tell_why(stage: Stage, rest: Rest) -> None:
    """Only when all of them rest; what the provider asked for comes with its time."""
    mailout_id = stage.running()
    until = datetime(2030, 1, 1, tzinfo=UTC)
    first, second = stage.worker(), stage.worker()
    stage.store.workers.see(first, Pulse(0.0, rest, "because", until))
    assert cause_of(stage, mailout_id) is None
    stage.store.workers.see(second, Pulse(0.0, rest, "because", until))
    standstill = progress_of(stage, mailout_id).standstill
    assert standstill is not None
    assert (standstill.cause, standstill.detail, standstill.next_try_at) == (Cause(rest), "because", until)
    assert bool(standstill.fix) == (rest in (Rest.SENDING_PAUSED, Rest.CLOCK)), "the others pass"


Act = Callable[[Stage, str], object]
ACTS: dict[Cause, Act] = {
    Cause.PAUSED: lambda stage, mailout: stage.store.dispatches.set_paused(mailout, True),
    Cause.CANCELLED: lambda stage, mailout: stage.store.dispatches.cancel(mailout),
    Cause.HALTED: lambda stage, _mailout: stage.store.ledger.halt("restored"),
}


@pytest.mark.parametrize("cause", ACTS)
def test_what_a_person_or_the_ledger_stopped_says_so(stage: Stage, cause: Cause) -> None:
    """Whatever else may be the matter: no worker would change it."""
    mailout_id = stage.running()
    ACTS[cause](stage, mailout_id)
    assert cause_of(stage, mailout_id) == cause


def test_the_phases_before_the_first_letter(stage: Stage) -> None:
    """Its page is read, then its letters are planned."""
    stage.worker()
    assert cause_of(stage, stage.started(3)) == Cause.PLANNING
    page = stage.new_mailout(letter=None, source="notion", source_id="page").id
    assert stage.store.mailouts.start(page)
    assert cause_of(stage, page) == Cause.FETCHING


def test_what_is_over_or_not_begun_is_not_explained(stage: Stage) -> None:
    """Its status says it."""
    stage.worker()
    assert cause_of(stage, stage.mailout()) is None
    mailout_id = stage.running()
    stage.settle(stage.claim_one(), ACCEPTED)
    stage.store.dispatches.complete(mailout_id)
    assert cause_of(stage, mailout_id) is None


def test_the_end_is_estimated_from_the_rate_of_all_workers(stage: Stage) -> None:
    """Two workers at 4 and 6 per second, twenty letters: two seconds. Two mailouts share the rate."""
    mailout_id = stage.running(20)
    for rate in (4.0, 6.0):
        stage.store.workers.see(stage.worker(), Pulse(rate))
    progress = progress_of(stage, mailout_id)
    assert progress.rate == 10.0
    assert progress.estimated_end is not None
    left = progress.estimated_end - stage.store.ledger.now()
    assert timedelta(0) < left <= timedelta(seconds=2)
    stage.running(20)
    assert progress_of(stage, mailout_id).rate == 5.0


def test_a_scheduled_mailout_tells_when_it_starts(stage: Stage) -> None:
    """It has not begun, so neither its worker nor its sender is looked at."""
    mailout_id = stage.mailout()
    when = datetime(2030, 1, 1, tzinfo=UTC)
    assert stage.store.mailouts.schedule(mailout_id, when)
    standstill = progress_of(stage, mailout_id).standstill
    assert standstill is not None
    assert (standstill.cause, standstill.next_try_at) == (Cause.SCHEDULED, when)


def test_only_the_workers_of_its_sender_count(stage: Stage) -> None:
    """A sender that rests keeps no other's mailout still, and its workers are no further processes."""
    mailout_id = stage.running()
    stage.worker()
    other = worker_record(str(uuid4()), "smtp")
    stage.store.workers.register(replace(other, sender_id=NOBODY))
    stage.store.workers.see(other.id, Pulse(5.0, Rest.THROTTLED, "too fast"))
    progress = progress_of(stage, mailout_id)
    assert (progress.standstill, progress.rate, progress.workers) == (None, None, 1)
    (added,) = [each for each in stage.store.workers.open() if each.id == other.id]
    assert added.sender_id == NOBODY
