"""What nearly every command begins with: settings, logs, an open store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sendonce.domain.engine.ids import SHORTEST_PREFIX, is_prefix, is_short_prefix
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import BadInput, NotFound
from sendonce.settings import Settings, load_settings

if TYPE_CHECKING:
    from sendonce.adapters.stores.sql import SqlStore


_SHOWN = 5


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
    from sendonce.wiring.stores import open_store

    store = open_store(settings, make=make)
    try:
        yield store
    finally:
        store.close()


def check_outputs(settings: Settings, *outputs: Path | None, source: Path | None = None) -> None:
    """Refuse to write over the database, over what is being read, or two files into one."""
    from sendonce.adapters.reports_csv import refuse_to_overwrite
    from sendonce.wiring.stores import sqlite_file

    kept = [(source, "the file to read")] if source else []
    database = sqlite_file(settings)
    if database is not None:
        names = [database.name + ending for ending in ("", "-wal", "-shm", "-journal")]
        kept += [(database.with_name(name), "the database") for name in names]
    refuse_to_overwrite(filter(None, outputs), kept)


def time_zone(settings: Settings) -> ZoneInfo:
    """The clock that people of this house go by."""
    from sendonce.wiring.house import time_zone

    return time_zone(settings)


def find_mailout(store: SqlStore, mailout_id: str) -> Mailout:
    """By its id or the beginning of it, or by the link or id of its page in Notion."""
    from sendonce.adapters.notion.ids import looks_like_page, page_id

    mailout = store.mailouts.get(mailout_id)
    if mailout is None and looks_like_page(mailout_id):
        mailout = store.mailouts.of_page(DEFAULT_TENANT, "notion", page_id(mailout_id))
    if mailout is None:
        mailout = store.mailouts.get(whole_id("mailout", mailout_id, store.mailouts.with_prefix))
    if mailout is None:
        raise NotFound(f"There is no mailout {mailout_id}: 'sendonce mailout list' shows what there is.")
    return mailout


def whole_id(noun: str, beginning: str, look: Callable[[str, int], Sequence[str]]) -> str:
    """The one id that begins so; the text itself where there is none. Raises BadInput for several, and
    NotFound for too few characters."""
    if is_short_prefix(beginning.lower()):
        raise NotFound(
            f"{beginning} is too short to find a {noun} by: write at least {SHORTEST_PREFIX} characters "
            "of its id."
        )
    found = look(beginning.lower(), _SHOWN + 1) if is_prefix(beginning.lower()) else []
    if len(found) > 1:
        shown = "\n".join(f"  {each}" for each in found[:_SHOWN])
        more = "\n  …" if len(found) > _SHOWN else ""
        raise BadInput(f"Several {noun}s begin with {beginning}: write more of it.\n{shown}{more}")
    return found[0] if found else beginning
