"""Before anything is sent a letter can be mended or thrown away; after that it cannot."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sendonce.domain.engine.ids import is_prefix
from sendonce.domain.mailouts.mailouts import MailoutStatus, NewMailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import NotFound
from tests.conformance.backdoor import audit
from tests.conformance.stage import LETTER, NOBODY, Stage

MENDED = NewMailout("mended", "file", replace(LETTER, subject="Hello again"), warnings=("look",))


@pytest.mark.parametrize("draft", [True, False])
def test_the_letter_of_an_unsent_mailout_is_replaced(stage: Stage, draft: bool) -> None:
    """It keeps its id and its state."""
    mailout = stage.new_mailout(draft=draft)
    assert stage.store.mailouts.replace_letter(mailout.id, MENDED)
    now = stage.get(mailout.id)
    assert (now.status, now.name, now.warnings) == (mailout.status, "mended", ("look",))
    assert stage.store.mailouts.letter(mailout.id).subject == "Hello again"


def test_a_scheduled_time_stays_when_the_letter_changes(stage: Stage) -> None:
    """The typo is mended; the order to send it tomorrow holds."""
    tomorrow = stage.store.ledger.now() + timedelta(days=1)
    mailout_id = stage.mailout()
    stage.store.mailouts.schedule(mailout_id, tomorrow)
    stage.store.mailouts.replace_letter(mailout_id, MENDED)
    assert (stage.get(mailout_id).scheduled, stage.get(mailout_id).send_at) == (True, tomorrow)


def test_the_time_that_the_mended_letter_names_holds_where_none_was_ordered(stage: Stage) -> None:
    tomorrow = stage.store.ledger.now() + timedelta(days=1)
    mailout_id = stage.mailout()
    stage.store.mailouts.replace_letter(mailout_id, replace(MENDED, send_at=tomorrow))
    assert (stage.get(mailout_id).scheduled, stage.get(mailout_id).send_at) == (False, tomorrow)
    stage.store.mailouts.replace_letter(mailout_id, MENDED)
    assert stage.get(mailout_id).send_at is None


def test_what_was_started_is_neither_replaced_nor_deleted(stage: Stage) -> None:
    """Nor what is over, or cancelled; a page is mended on the page."""
    mailouts, started = stage.store.mailouts, stage.running(1)
    cancelled = stage.mailout()
    stage.store.dispatches.cancel(cancelled)
    for mailout_id in (started, cancelled, NOBODY):
        assert not mailouts.replace_letter(mailout_id, MENDED)
        assert not mailouts.delete(mailout_id)
    page = stage.new_mailout(source="notion", source_id="page", letter=None).id
    assert not mailouts.replace_letter(page, MENDED)


@pytest.mark.parametrize("draft", [True, False])
def test_an_unsent_mailout_is_deleted(stage: Stage, draft: bool) -> None:
    """It is gone with its letter, and the audit log has it."""
    mailout_id = stage.new_mailout(draft=draft).id
    assert [stage.store.mailouts.delete(mailout_id) for _ in range(2)] == [True, False]
    assert stage.store.mailouts.get(DEFAULT_TENANT, mailout_id) is None
    with pytest.raises(NotFound):
        stage.store.mailouts.letter(mailout_id)
    assert ("operator", "delete", mailout_id) in audit(stage.store)
    assert not stage.store.mailouts.start(mailout_id)


def test_the_same_words_that_went_out_before_are_found(stage: Stage) -> None:
    """Tests, drafts and other words are no twins; the latest comes first."""
    mailouts = stage.store.mailouts
    stage.new_mailout(draft=True)
    mailouts.start(stage.new_mailout(letter=replace(LETTER, subject="Other")).id)
    mailouts.start(stage.new_mailout(is_test=True, audience=("qa@example.com",)).id)
    assert mailouts.twins(DEFAULT_TENANT, LETTER) == []
    first = stage.mailout()
    mailouts.start(first)
    assert [m.id for m in mailouts.twins(DEFAULT_TENANT, LETTER)] == [first]
    assert stage.get(first).status == MailoutStatus.SENDING


def test_the_beginning_of_an_id_names_it(stage: Stage) -> None:
    """With its dashes or without; ids of one moment share theirs, and all of them are found."""
    mailout_id = stage.running(3)
    for length in (6, 8, 9, 13, 36):
        assert mailout_id in stage.store.mailouts.with_prefix(DEFAULT_TENANT, mailout_id[:length], 10)
    assert mailout_id in stage.store.mailouts.with_prefix(
        DEFAULT_TENANT, mailout_id.replace("-", "")[:20], 10
    )
    jobs = [job.id for job in stage.store.jobs.list(dispatch_id=mailout_id)]
    assert set(jobs) <= set(stage.store.jobs.with_prefix(jobs[0][:8], 10))
    assert stage.store.jobs.with_prefix(jobs[0], 10) == [jobs[0]]
    assert stage.store.mailouts.with_prefix(DEFAULT_TENANT, "ffffff", 10) == []
    assert [
        is_prefix(text) for text in ("abcde", "abcdef", "ABCDEF", "xbcdef", "0" * 33, "0198c5a1-7b1e")
    ] == [*(False, True, False, False, False, True)]
