"""Do what a page asks for: its button was pressed, or its status was changed. It never ends in an error.

Why nothing happens is written beside the mailout, and from there onto the page, for whoever pressed sees
nothing else.

    the page asks          what happens
    for a test             its testers get the letter; the page goes back to draft before that
    to be sent             its mailout starts, once, however often and late the same event comes
    for what cannot be     the mailout stays as it is, with the reason
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus, PageEvent
from sendonce.errors import BadInput, RefusedByRule
from sendonce.flows.mailouts.start_mailout import StartOrder, page_mailout, start_mailout, start_test
from sendonce.ports.mailouts import MailoutStore

NO_TESTERS = "The page is marked as a test, and TEST_EMAILS is not set: say who gets it."
ALREADY_SENT = "It was sent already, and a page is sent once. To send it again, duplicate the page."
ALREADY_OVER = "It has ended without success. To send it, duplicate the page."
CANCELLED = "It was cancelled. To send it, duplicate the page."
TEST_CHANGED = (
    "The test mark was changed while the page was ready: nothing is sent. Set the status to ready again."
)


@dataclass(frozen=True, slots=True)
class PageWish:
    """``is_test`` is what the page said when it asked: it may say something else by now."""

    source: str
    page_id: str
    event: PageEvent | None = None
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """``mailout`` is the one that was started, or else the page's own as it is now."""

    mailout: Mailout
    started: bool
    planned: int = 0
    reason: str | None = None


def obey_page(
    store: MailoutStore,
    message_settings: Callable[[], MessageSettings],
    tenant_id: TenantId,
    test_emails: tuple[str, ...],
    wish: PageWish,
) -> PageAnswer:
    mailout = page_mailout(store, tenant_id, wish.source, wish.page_id)
    if wish.event is not None and not wish.event.is_news_to(mailout.page_event):
        return PageAnswer(mailout, started=False)
    try:
        if wish.is_test:
            return _start_test(store, mailout, test_emails, wish.event)
        order = StartOrder(mailout.id, tenant_id, event=wish.event)
        report = start_mailout(store, message_settings, order)
        return PageAnswer(report.mailout, started=True, planned=report.planned)
    except (BadInput, RefusedByRule) as exc:
        return _say_why_not(store, mailout, wish.event, str(exc))


def tell_page_of_test_mark(store: MailoutStore, tenant_id: TenantId, wish: PageWish) -> None:
    """The test mark of a page that is ready was changed, and that alone: it starts nothing, and no older
    event of the page does any more."""
    mailout = page_mailout(store, tenant_id, wish.source, wish.page_id)
    news = wish.event is None or store.mailouts.hear(mailout.id, wish.event)
    if news and mailout.status == MailoutStatus.READY and not mailout.scheduled:
        store.mailouts.note(mailout.id, TEST_CHANGED)


def tested(testers: int) -> str:
    """What a page is told that was sent as a test."""
    return f"Sent as a test to {testers} addresses: the page is marked as a test."


def start_page_test(
    store: MailoutStore, mailout: Mailout, test_emails: Sequence[str], event: PageEvent | None = None
) -> Mailout:
    """Send a page's letter to the testers. The page is read, and put back to draft, when it is prepared:
    a test that carries an event was asked for by its page."""
    store.mailouts.note(mailout.id, tested(len(test_emails)))
    asked_by = event or PageEvent("its test mark")
    return start_test(store, mailout, None, test_emails, asked_by, forced=mailout.forced)


def _start_test(
    store: MailoutStore, mailout: Mailout, test_emails: tuple[str, ...], event: PageEvent | None
) -> PageAnswer:
    if not test_emails:
        raise BadInput(NO_TESTERS)
    if event is not None and not store.mailouts.hear(mailout.id, event):
        return PageAnswer(mailout, started=False)
    test = start_page_test(store, mailout, test_emails, event)
    return PageAnswer(test, started=True, planned=len(test_emails))


def _say_why_not(store: MailoutStore, mailout: Mailout, event: PageEvent | None, reason: str) -> PageAnswer:
    if event is not None:
        store.mailouts.hear(mailout.id, event)
    now = store.mailouts.get(mailout.tenant_id, mailout.id) or mailout
    over = {MailoutStatus.SENT: ALREADY_SENT, MailoutStatus.FAILED: ALREADY_OVER}
    why = CANCELLED if now.cancelled else over.get(now.status, reason)
    store.mailouts.note(mailout.id, why)
    return PageAnswer(now, started=False, reason=why)
