"""What nearly every command begins with: settings, logs, an open store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sendonce.domain.mailouts import Mailout
from sendonce.domain.subscribers import DEFAULT_TENANT
from sendonce.errors import NotFound
from sendonce.settings import Settings, load_settings

if TYPE_CHECKING:
    from sendonce.adapters.stores.sql import SqlStore


def ready_settings(*, quiet: bool = False) -> Settings:
    """The settings in force, with the log going where they say. ``quiet`` keeps info lines off a screen
    that shows progress."""
    from sendonce.entrypoints.logs import configure_logging

    settings = load_settings()
    level = (
        "warning"
        if quiet and settings.log_level == "info" and settings.log_file is None
        else settings.log_level
    )
    configure_logging(
        level, settings.log_format, settings.log_file, settings.secrets(), colours=not settings.no_color
    )
    return settings


@contextmanager
def opened_store(settings: Settings, *, make: bool = False) -> Iterator[SqlStore]:
    """The store. Only what puts the first thing into a database may ``make`` an SQLite file."""
    from sendonce import wiring

    store = wiring.open_store(settings, make=make)
    try:
        yield store
    finally:
        store.close()


def find_mailout(store: SqlStore, mailout_id: str) -> Mailout:
    """By its id, or by the link or id of its page in Notion."""
    from sendonce.adapters.notion.ids import looks_like_page, page_id

    mailout = store.mailouts.get(mailout_id)
    if mailout is None and looks_like_page(mailout_id):
        mailout = store.mailouts.of_page(DEFAULT_TENANT, "notion", page_id(mailout_id))
    if mailout is None:
        raise NotFound(f"There is no mailout {mailout_id}: 'sendonce mailout list' shows what there is.")
    return mailout
