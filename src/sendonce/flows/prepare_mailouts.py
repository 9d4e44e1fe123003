"""Read the letters of started mailouts from the pages they were written on, and check them.

A mailout that cannot be sent goes back to ready with the reason; nothing of it is consumed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sendonce.domain.letters import MessageSettings
from sendonce.domain.mailouts import FetchedLetter, Mailout, MailoutStatus, Phase
from sendonce.errors import BadInput, NotFound, Refused, Unavailable
from sendonce.flows.preflight import check_letter, check_variables, count_audience
from sendonce.flows.start_mailout import marked_as_test, start_test
from sendonce.ports import LetterSource, Store

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Preparer:
    """``sources`` are by the name that mailouts carry; ``test_emails`` get the letters marked as tests."""

    store: Store
    sources: Mapping[str, LetterSource]
    message_settings: Callable[[], MessageSettings]
    test_emails: Sequence[str]

    def run(self) -> None:
        for mailout in self.store.mailouts.with_status(MailoutStatus.SENDING):
            if mailout.phase == Phase.FETCHING:
                self._prepare(mailout)

    def _prepare(self, mailout: Mailout) -> None:
        try:
            self._fetch_and_freeze(mailout)
        except Unavailable as exc:
            # The page's host is down or slow: the mailout waits for it.
            log.warning(
                "a page cannot be read yet", extra={"fields": {"mailout": mailout.id, "error": str(exc)}}
            )
        except (BadInput, NotFound, Refused) as exc:
            self.store.mailouts.stop_before_first(mailout.id, str(exc))
            log.warning("mailout not started", extra={"fields": {"mailout": mailout.id, "reason": str(exc)}})

    def _fetch_and_freeze(self, mailout: Mailout) -> None:
        source = self.sources.get(mailout.source)
        if source is None or mailout.source_id is None:
            raise BadInput(f"Letters from {mailout.source!r} cannot be read here: set NOTION_TOKEN.")
        page = source.fetch(mailout.source_id)
        check_letter(page.letter, self.message_settings(), mailout.id)
        if page.is_test and not mailout.is_test:
            self._send_test_instead(mailout, page)
            return
        letter = marked_as_test(page.letter) if mailout.is_test else page.letter
        if not mailout.is_test:
            _check_status(page)
            if page.send_at is not None and page.send_at > self.store.ledger.now():
                self._wait_for_its_time(mailout, page, page.send_at)
                return
            check_variables(self.store, mailout.tenant_id, letter)
            count_audience(self.store, mailout.tenant_id)
        self.store.mailouts.freeze(mailout.id, page.name, letter, page.warnings)

    def _wait_for_its_time(self, mailout: Mailout, page: FetchedLetter, send_at: datetime) -> None:
        """The page is read again then: until that moment its author may still write, or move the time."""
        self.store.mailouts.stop_before_first(mailout.id, None, page.warnings, send_at=send_at)
        log.info("mailout waits", extra={"fields": {"mailout": mailout.id, "send_at": send_at.isoformat()}})

    def _send_test_instead(self, mailout: Mailout, page: FetchedLetter) -> None:
        """The page says that it is a test: the mailout is not consumed."""
        if not self.test_emails:
            raise BadInput("The page is marked as a test, and TEST_EMAILS is not set: say who gets it.")
        self.store.mailouts.stop_before_first(
            mailout.id,
            f"Sent as a test to {len(self.test_emails)} addresses: the page is marked as a test.",
            page.warnings,
        )
        start_test(self.store, mailout, page.letter, self.test_emails)


def _check_status(page: FetchedLetter) -> None:
    """A draft is not for everybody yet, and a page that says it was sent may be a copy of one that was."""
    if not page.may_be_sent:
        raise Refused(f"The page's status is «{page.status_name}»: set it to ready, then send it again.")
