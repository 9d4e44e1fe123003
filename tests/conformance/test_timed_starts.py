"""Mailouts that are told to start at a time: the clock starts them once, and only those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sendonce.domain.engine.checks import Check, stop
from sendonce.domain.engine.letters import Letter, MessageSettings
from sendonce.domain.mailouts.mailouts import MailoutStatus, NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import LedgerRolledBack, Overtaken, RefusedByRule
from sendonce.flows.engine.check_sender import Recipients
from sendonce.flows.mailouts.start_due import DueStarter
from sendonce.flows.mailouts.start_mailout import StartOrder, StartReport, start_mailout
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
    stage.store.dispatches.cancel(cancelled)
    assert not mailouts.schedule(cancelled, soon)


def test_cancelled_before_its_time(stage: Stage) -> None:
    """A cancelled mailout never comes due."""
    mailouts, mailout_id = stage.store.mailouts, stage.mailout()
    mailouts.schedule(mailout_id, stage.store.ledger.now())
    assert stage.store.dispatches.cancel(mailout_id)
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


SETTINGS = MessageSettings(
    "news@example.com", None, None, "Riga", "https://example.com", "example.com", b"secret"
)


def starter(stage: Stage) -> DueStarter:
    return DueStarter(stage.store, lambda: SETTINGS)


def scheduled(stage: Stage, recipients: int = 1, **kwargs: Any) -> str:
    """A mailout that is due in an hour."""
    stage.subscribe(range(recipients))
    mailout_id = stage.new_mailout(**kwargs).id
    assert stage.store.mailouts.schedule(mailout_id, stage.store.ledger.now() + timedelta(hours=1))
    return mailout_id


def test_the_clock_starts_it_for_whoever_is_there_then(stage: Stage) -> None:
    """Not before its time; the audience is that of the time it starts at; a second look starts nothing."""
    mailout_id = scheduled(stage, 1)
    starter(stage).run()
    assert stage.get(mailout_id).status == MailoutStatus.READY
    stage.subscribe(range(3))
    pass_time(stage.store, 3601)
    for _ in range(2):
        starter(stage).run()
    assert stage.get(mailout_id).status == MailoutStatus.SENDING
    stage.plan(mailout_id)
    assert stage.store.jobs.books(mailout_id).planned == 3


def test_many_clocks_start_it_once(shared_stage: Stage) -> None:
    """Workers and schedulers look at the same moment: one start, and no refusal is written down."""
    mailout_id = scheduled(shared_stage)
    pass_time(shared_stage.store, 3601)
    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(starter(shared_stage).run) for _ in range(6)]:
            done.result()
    mailout = shared_stage.get(mailout_id)
    assert (mailout.status, mailout.reason) == (MailoutStatus.SENDING, None)


class Meddling:
    """A check of the sender during which a person changes the mailout."""

    def __init__(self, change: Callable[[], bool]) -> None:
        self._change = change

    def refusals(self, sender_id: str, recipients: Recipients) -> Sequence[Check]:
        assert self._change()
        return ()


def test_whoever_moves_its_time_in_the_last_moment_is_not_overruled(stage: Stage) -> None:
    """They were told of the new time; the clock was already checking the sender, which takes seconds."""
    mailout_id = scheduled(stage)
    pass_time(stage.store, 3601)
    later = stage.store.ledger.now() + timedelta(hours=2)
    check = Meddling(lambda: stage.store.mailouts.schedule(mailout_id, later))
    DueStarter(stage.store, lambda: SETTINGS, check).run()
    mailout = stage.get(mailout_id)
    assert (mailout.status, mailout.scheduled, mailout.send_at) == (MailoutStatus.READY, True, later)


def test_a_letter_changed_in_the_last_moment_is_checked_before_it_is_sent(stage: Stage) -> None:
    """What starts is what was checked. The next look checks the new letter, and refuses it."""
    mailout_id = scheduled(stage)
    pass_time(stage.store, 3601)
    bad = NewMailout(name="n", source="s", letter=Letter("Hi", "", "<p>{{ town }}</p>", "{{ town }}"))
    check = Meddling(lambda: stage.store.mailouts.replace_letter(mailout_id, bad))
    DueStarter(stage.store, lambda: SETTINGS, check).run()
    assert stage.get(mailout_id).status == MailoutStatus.READY
    starter(stage).run()
    mailout = stage.get(mailout_id)
    assert (mailout.status, mailout.scheduled) == (MailoutStatus.READY, False)
    assert "{{ town }}" in (mailout.reason or "")


def test_a_time_moved_before_the_clock_gets_to_it_holds(stage: Stage) -> None:
    """The list of what is due may be seconds old: the mailouts before it were being started."""
    mailout_id = scheduled(stage)
    later = stage.store.ledger.now() + timedelta(hours=2)
    order = StartOrder(mailout_id, DEFAULT_TENANT, at_once=True, for_time=stage.get(mailout_id).send_at)
    stage.store.mailouts.schedule(mailout_id, later)
    with pytest.raises(Overtaken, match="changed a moment ago"):
        start_mailout(stage.store, lambda: SETTINGS, order)
    assert stage.get(mailout_id).scheduled


class Refusing:
    """A provider that would refuse every letter."""

    def refusals(self, sender_id: str, recipients: Recipients) -> Sequence[Check]:
        return [stop("ses.sending", "Sending is paused.", "Answer Amazon's case.", refuses_all=True)]


@pytest.mark.parametrize("force", [True, False])
def test_a_word_that_overrules_the_provider_is_kept_with_the_time(stage: Stage, force: bool) -> None:
    """Forced when it was scheduled, it starts at its time; scheduled again without the word, it does not."""
    stage.subscribe([0])
    mailout_id = stage.mailout()
    later = stage.store.ledger.now() + timedelta(hours=1)
    forced = StartOrder(mailout_id, DEFAULT_TENANT, send_at=later, force=True)
    start_mailout(stage.store, lambda: SETTINGS, forced, Refusing())
    if not force:
        start_mailout(stage.store, lambda: SETTINGS, replace(forced, force=False))
    pass_time(stage.store, 3601)
    DueStarter(stage.store, lambda: SETTINGS, Refusing()).run()
    mailout = stage.get(mailout_id)
    assert (mailout.status == MailoutStatus.SENDING, mailout.forced) == (force, force)
    assert force or "Sending is paused" in (mailout.reason or "")


def test_what_cannot_start_waits_for_a_person(stage: Stage) -> None:
    """The reason is written down, and the clock does not try again and again."""
    mailout_id = scheduled(stage, letter=Letter("Hi", "", "<p>{{ town }}</p>", "{{ town }}"))
    pass_time(stage.store, 3601)
    starter(stage).run()
    mailout = stage.get(mailout_id)
    assert (mailout.status, mailout.scheduled) == (MailoutStatus.READY, False)
    assert mailout.reason is not None
    assert "{{ town }} has no value for 1 active" in mailout.reason


def test_days_too_late_is_not_sent(stage: Stage) -> None:
    """Nobody ran a worker for more than a day: a morning's letter is not sent on another."""
    mailout_id = scheduled(stage)
    pass_time(stage.store, 3600 + 24 * 3600 + 60)
    starter(stage).run()
    mailout = stage.get(mailout_id)
    assert (mailout.status, mailout.scheduled) == (MailoutStatus.READY, False)
    assert mailout.reason is not None
    assert "no worker ran within a day" in mailout.reason


def test_a_halted_ledger_starts_nothing(stage: Stage) -> None:
    """Its mailouts keep their time until somebody has looked."""
    mailout_id = scheduled(stage)
    pass_time(stage.store, 3601)
    stage.store.ledger.halt("restored")
    with pytest.raises(LedgerRolledBack):
        starter(stage).run()
    assert stage.get(mailout_id).scheduled


def test_a_letters_own_time_is_honoured_until_it_is_overruled(stage: Stage) -> None:
    """An order without a time schedules it, again and again; a time that has passed needs a word."""
    stage.subscribe(range(1))
    later = stage.store.ledger.now() + timedelta(hours=1)
    mailout_id = stage.new_mailout(send_at=later).id

    def order(**how: Any) -> StartReport:
        return start_mailout(stage.store, lambda: SETTINGS, StartOrder(mailout_id, DEFAULT_TENANT, **how))

    assert [order().waits_until for _ in range(2)] == [later, later]
    assert order(send_at=later + timedelta(days=1)).status == "scheduled"
    with pytest.raises(RefusedByRule, match="has passed"):
        order(send_at=stage.store.ledger.now() - timedelta(minutes=1))
    stage.store.mailouts.unschedule(mailout_id)
    pass_time(stage.store, 2 * 86400)
    with pytest.raises(RefusedByRule, match=r"own time, .* has passed"):
        order()
    assert order(at_once=True).status == "sending"
    assert stage.get(mailout_id).status == MailoutStatus.SENDING
