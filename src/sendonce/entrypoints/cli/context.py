"""What nearly every command begins with: settings, logs, an open store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sendonce.domain.mailouts import Mailout
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
def opened_store(settings: Settings) -> Iterator[SqlStore]:
    from sendonce import wiring

    store = wiring.open_store(settings)
    try:
        yield store
    finally:
        store.close()


def find_mailout(store: SqlStore, mailout_id: str) -> Mailout:
    mailout = store.mailouts.get(mailout_id)
    if mailout is None:
        raise NotFound(f"There is no mailout {mailout_id}: 'sendonce mailout list' shows what there is.")
    return mailout
