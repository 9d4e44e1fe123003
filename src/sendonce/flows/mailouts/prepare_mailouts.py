"""Read the letters of started mailouts from the pages they were written on, and check them.

A mailout that cannot be sent goes back to ready with the reason; nothing of it is consumed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.mailouts.mailouts import FetchedLetter, Mailout, MailoutStatus, Phase
from sendonce.errors import BadInput, NotFound, RefusedByRule, Unavailable
from sendonce.flows.engine.check_sender import (
    UNCHECKED,
    Recipients,
    SenderCheck,
    refuse_if_refused,
)
from sendonce.flows.mailouts.audience import subscribers_of
from sendonce.flows.mailouts.obey_page import NO_TESTERS, start_page_test, tested
from sendonce.flows.mailouts.preflight import check_letter, check_variables, count_audience
from sendonce.flows.mailouts.start_mailout import marked_as_test
from sendonce.ports.mailouts import LetterSource, MailoutStore

log = logging.getLogger(__name__)

_A_LITTLE_LATE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Preparer:
    """``sources`` are by the name that mailouts carry; ``test_emails`` get the letters marked as tests."""

    store: MailoutStore
    sources: Mapping[str, LetterSource]
    message_settings: Callable[[], MessageSettings]
    test_emails: Sequence[str]
    sender_check: SenderCheck = UNCHECKED

    def run(self) -> None:
        """Tests come first: while a page waits to be put back to draft, it goes to nobody else."""
        early = self.store.mailouts.being_prepared()
        fetching = [mailout for mailout in early if mailout.phase == Phase.FETCHING]
        tests = [mailout for mailout in fetching if mailout.is_test]
        under_test = {test.source_id for test in tests if not self._prepare(test)}
        for mailout in fetching:
            if not mailout.is_test and mailout.source_id not in under_test:
                self._prepare(mailout)

    def _prepare(self, mailout: Mailout) -> bool:
        """Whether it is over with the page; False where the page is to be read again."""
        try:
            self._fetch_and_freeze(mailout)
        except Unavailable as exc:
            # The page's host is down or slow: the mailout waits for it.
            log.warning(
                "a page cannot be read yet", extra={"fields": {"mailout": mailout.id, "error": str(exc)}}
            )
            return False
        except (BadInput, NotFound, RefusedByRule) as exc:
            self.store.mailouts.stop_before_first(mailout.id, str(exc))
            if (own := self._of_its_page(mailout)) is not None:
                self.store.mailouts.note(own.id, str(exc))
            log.warning("mailout not started", extra={"fields": {"mailout": mailout.id, "reason": str(exc)}})
        return True

    def _fetch_and_freeze(self, mailout: Mailout) -> None:
        source = self.sources.get(mailout.source)
        if source is None or mailout.source_id is None:
            raise BadInput(f"Letters from {mailout.source!r} cannot be read here: set NOTION_TOKEN.")
        page = source.fetch(mailout.source_id)
        if mailout.is_test:
            self._freeze_test(source, mailout, page)
        elif page.is_test:
            self._send_test_instead(source, mailout, page)
        elif page.send_at is not None and page.send_at > self.store.ledger.now():
            self._check(mailout, page)
            self._wait_for_its_time(mailout, page, page.send_at)
        else:
            self._check(mailout, page)
            self._refuse_a_time_of_old(mailout, page)
            check_variables(self.store, mailout.tenant_id, page.letter)
            count_audience(self.store, mailout.tenant_id)
            self._check_sender(mailout, subscribers_of(self.store, mailout.tenant_id))
            self.store.mailouts.freeze(mailout.id, page.name, page.letter, page.warnings)

    def _check(self, mailout: Mailout, page: FetchedLetter) -> None:
        check_letter(page.letter, self.message_settings(), mailout.id)
        _check_status(page)

    def _freeze_test(self, source: LetterSource, mailout: Mailout, page: FetchedLetter) -> None:
        """A page that is ready and was tested must not be sent to everybody because its test mark is taken
        off: it is a draft again before the first tester has the letter."""
        assert mailout.source_id is not None
        if page.status == MailoutStatus.READY and (page.is_test or mailout.page_event is not None):
            source.take_back(mailout.source_id)
        check_letter(page.letter, self.message_settings(), mailout.id)
        self._check_sender(mailout, lambda: mailout.audience or ())
        self.store.mailouts.freeze(mailout.id, page.name, marked_as_test(page.letter), page.warnings)

    def _of_its_page(self, test: Mailout) -> Mailout | None:
        """The mailout of the page that a test is of."""
        if not test.is_test or test.source_id is None:
            return None
        return self.store.mailouts.of_page(test.tenant_id, test.source, test.source_id)

    def _refuse_a_time_of_old(self, mailout: Mailout, page: FetchedLetter) -> None:
        """A copy of a page has the time of the page it was copied from, and nobody meant that."""
        if page.send_at is None or page.send_at == mailout.send_at:
            return
        if self.store.ledger.now() - page.send_at > _A_LITTLE_LATE:
            raise RefusedByRule(
                f"The time to send at, {page.send_at:%Y-%m-%d %H:%M} UTC, has passed: set another, or none, "
                "then send it again."
            )

    def _check_sender(self, mailout: Mailout, recipients: Recipients) -> None:
        if not mailout.forced:
            refuse_if_refused(self.sender_check, mailout.sender_id, recipients)

    def _wait_for_its_time(self, mailout: Mailout, page: FetchedLetter, send_at: datetime) -> None:
        """The page is read again then: until that moment its author may still write, or move the time."""
        self.store.mailouts.stop_before_first(mailout.id, None, page.warnings, send_at=send_at)
        log.info("mailout waits", extra={"fields": {"mailout": mailout.id, "send_at": send_at.isoformat()}})

    def _send_test_instead(self, source: LetterSource, mailout: Mailout, page: FetchedLetter) -> None:
        """The page says that it is a test. First of all the mailout is stopped: from here on it cannot go to
        everybody, whatever the page says when it is read again."""
        assert mailout.source_id is not None
        testers = len(self.test_emails)
        reason = tested(testers) if testers else NO_TESTERS
        if not self.store.mailouts.stop_before_first(mailout.id, reason, page.warnings):
            return
        if testers:
            start_page_test(self.store, mailout, self.test_emails)
        elif page.status == MailoutStatus.READY:
            source.take_back(mailout.source_id)


def _check_status(page: FetchedLetter) -> None:
    """A draft is not for everybody yet, and a page that says it was sent may be a copy of one that was."""
    if not page.may_be_sent:
        raise RefusedByRule(
            f"The page's status is «{page.status_name}»: set it to ready, then send it again."
        )
