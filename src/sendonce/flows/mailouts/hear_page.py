"""Hear what a page says of itself: one whose status became ready is started."""

from __future__ import annotations

from collections.abc import Callable

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.flows.mailouts.obey_page import PageWish, obey_page, tell_page_of_test_mark
from sendonce.ports.mailouts import MailoutStore, PageInbox


def hear_page(
    store: MailoutStore,
    inbox: PageInbox,
    message_settings: Callable[[], MessageSettings],
    tenant_id: TenantId,
    test_emails: tuple[str, ...],
    body: bytes,
) -> bool:
    """Whether a mailout was started by it. ``body`` is signed. Raises Unavailable where the page cannot be
    looked at now."""
    news = inbox.read(body)
    page = inbox.look(news) if news.may_ask else None
    if page is None or page.status != MailoutStatus.READY:
        return False
    wish = PageWish("notion", page.page_id, news.event, page.is_test)
    if page.status_changed:
        return obey_page(store, message_settings, tenant_id, test_emails, wish).started
    if page.test_mark_changed:
        tell_page_of_test_mark(store, tenant_id, wish)
    return False
