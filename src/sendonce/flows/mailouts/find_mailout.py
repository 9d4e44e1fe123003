"""Find a mailout by whatever a person or a program calls it."""

from __future__ import annotations

from functools import partial

from sendonce.domain.engine.ids import whole_id
from sendonce.domain.engine.tenants import TenantId
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.domain.mailouts.page_ids import looks_like_page, page_id
from sendonce.errors import NotFound
from sendonce.ports.mailouts import MailoutStore


def find_mailout(store: MailoutStore, tenant_id: TenantId, name: str) -> Mailout:
    """For people: by its id or the beginning of it, or by the link or id of its page in Notion.

    Raises NotFound, and BadInput where several ids begin so.
    """
    mailout = mailout_named(store, tenant_id, name)
    if mailout is None:
        whole = whole_id("mailout", name, partial(store.mailouts.with_prefix, tenant_id))
        mailout = store.mailouts.get(tenant_id, whole)
    if mailout is None:
        raise NotFound(f"There is no mailout {name}: 'sendonce mailout list' shows what there is.")
    return mailout


def mailout_named(store: MailoutStore, tenant_id: TenantId, name: str) -> Mailout | None:
    """For programs, which do not abbreviate: by its id, or by its page in Notion."""
    mailout = store.mailouts.get(tenant_id, name)
    if mailout is None and looks_like_page(name):
        mailout = store.mailouts.of_page(tenant_id, "notion", page_id(name))
    return mailout


def unknown_page(store: MailoutStore, tenant_id: TenantId, name: str) -> str | None:
    """The page of Notion that is meant; None where the name is the id of a mailout, or of nothing."""
    if store.mailouts.get(tenant_id, name) is not None or not looks_like_page(name):
        return None
    return page_id(name)
