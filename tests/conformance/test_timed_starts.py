"""Mailouts that are told to start at a time: the clock starts them once, and only those."""

from __future__ import annotations

from datetime import timedelta

from sendonce.domain.letters import Letter
from sendonce.domain.mailouts import MailoutStatus
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import Stage


def test_a_letter_keeps_whom_to_answer_and_that_it_is_plain(stage: Stage) -> None:
    """What a letter says of itself comes back as it was kept."""
    letter = Letter("Hello", "", "<p>Hi</p>", "Hi", "The Bakery", "hello@bakery.example", text_only=True)
    mailout = stage.new_mailout(letter=letter)
    assert stage.store.mailouts.letter(mailout.id) == letter


def test_a_wish_starts_nothing(stage: Stage) -> None:
    """A letter's own time is kept; without an order the clock starts nothing."""
    past = stage.store.ledger.now() - timedelta(hours=1)
    mailout = stage.new_mailout(send_at=past)
    assert (mailout.send_at, mailout.scheduled) == (past, False)
    assert stage.store.mailouts.due() == []


def test_a_scheduled_mailout_comes_due_once(stage: Stage) -> None:
    """Not before its time, then until it is started, and not after that."""
    mailouts, mailout_id = stage.store.mailouts, stage.mailout()
    assert mailouts.schedule(mailout_id, stage.store.ledger.now() + timedelta(hours=1))
    assert stage.get(mailout_id).scheduled
    assert mailouts.due() == []
    pass_time(stage.store, 3601)
    assert [m.id for m in mailouts.due()] == [mailout_id]
    assert [mailouts.start(mailout_id) for _ in range(2)] == [True, False]
    assert mailouts.due() == []
    assert not stage.get(mailout_id).scheduled


def test_the_earliest_comes_first_and_a_time_can_be_moved(stage: Stage) -> None:
    """Scheduling again moves the time."""
    mailouts, now = stage.store.mailouts, stage.store.ledger.now()
    first, second = stage.mailout(), stage.mailout()
    mailouts.schedule(first, now - timedelta(minutes=1))
    mailouts.schedule(second, now - timedelta(minutes=2))
    assert [m.id for m in mailouts.due()] == [second, first]
    mailouts.schedule(second, now + timedelta(minutes=2))
    assert [m.id for m in mailouts.due()] == [first]


def test_only_a_ready_mailout_is_scheduled(stage: Stage) -> None:
    """A draft waits to be made ready; one that is sending or over has no time to wait for."""
    mailouts, soon = stage.store.mailouts, stage.store.ledger.now()
    assert not mailouts.schedule(stage.new_mailout(draft=True).id, soon)
    assert not mailouts.schedule(stage.running(1), soon)
    cancelled = stage.mailout()
    mailouts.cancel(cancelled)
    assert not mailouts.schedule(cancelled, soon)


def test_cancelled_before_its_time(stage: Stage) -> None:
    """A cancelled mailout never comes due."""
    mailouts, mailout_id = stage.store.mailouts, stage.mailout()
    mailouts.schedule(mailout_id, stage.store.ledger.now())
    assert mailouts.cancel(mailout_id)
    assert mailouts.due() == []
    assert stage.get(mailout_id).status == MailoutStatus.FAILED
    assert not stage.get(mailout_id).scheduled


def test_taken_back_with_the_reason(stage: Stage) -> None:
    """What could not be started at its time is ready again, says why, and waits for a person."""
    mailouts, mailout_id = stage.store.mailouts, stage.mailout()
    mailouts.schedule(mailout_id, stage.store.ledger.now())
    assert [mailouts.unschedule(mailout_id, "no footer") for _ in range(2)] == [True, False]
    assert mailouts.due() == []
    assert (stage.get(mailout_id).status, stage.get(mailout_id).reason) == (MailoutStatus.READY, "no footer")


def test_a_page_that_is_too_early_waits(stage: Stage) -> None:
    """Read before its time, it goes back and is due then; it is read again at that time."""
    mailouts = stage.store.mailouts
    page = stage.new_mailout(source="notion", source_id="page", letter=None).id
    mailouts.start(page)
    later = stage.store.ledger.now() + timedelta(minutes=5)
    assert mailouts.stop_before_first(page, None, ["a warning"], send_at=later)
    assert (stage.get(page).status, stage.get(page).send_at) == (MailoutStatus.READY, later)
    assert mailouts.due() == []
    pass_time(stage.store, 301)
    assert [m.id for m in mailouts.due()] == [page]
