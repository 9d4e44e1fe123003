"""What nearly every command begins with: settings, logs, an open store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.settings import Settings, load_settings

if TYPE_CHECKING:  # every command imports this page, and none of them all the doors
    from sendonce.domain.mailouts.mailouts import Mailout
    from sendonce.ports.campaigns import CampaignStore
    from sendonce.ports.people import TenantStore
    from sendonce.ports.prospecting import ProspectingStore
    from sendonce.ports.store import Store


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
        level,
        settings.log_format,
        settings.log_file,
        settings.secrets(),
        most_bytes=settings.log_file_max_bytes,
        keep=settings.log_file_keep,
        colours=not settings.no_color,
    )
    return settings


@contextmanager
def opened_store(settings: Settings, *, make: bool = False) -> Iterator[Store]:
    """The store. Only what puts the first thing into a database may ``make`` an SQLite file."""
    from sendonce.wiring.stores import open_store

    with closing(open_store(settings, make=make)) as store:
        yield store


@contextmanager
def opened_clients(settings: Settings, *, make: bool = False) -> Iterator[TenantStore]:
    """The store with what doors to strangers need, which only databases have."""
    from sendonce.wiring.stores import open_store

    with closing(open_store(settings, make=make)) as store:
        yield store


@contextmanager
def opened_prospects(settings: Settings, *, make: bool = False) -> Iterator[ProspectingStore]:
    """The same, with all that prospecting keeps."""
    from sendonce.wiring.stores import open_store

    with closing(open_store(settings, make=make)) as store:
        yield store


@contextmanager
def opened_campaigns(settings: Settings, *, make: bool = False) -> Iterator[CampaignStore]:
    """The same, with all that campaigns keep."""
    from sendonce.wiring.stores import open_store

    store = open_store(settings, make=make)
    try:
        yield store
    finally:
        store.close()


def check_outputs(settings: Settings, *outputs: Path | None, source: Path | None = None) -> None:
    """Refuse to write over the database, over what is being read, or two files into one."""
    from sendonce.wiring.files import check_outputs

    check_outputs(settings, *outputs, source=source)


def time_zone(settings: Settings) -> ZoneInfo:
    """The clock that people of this house go by."""
    from sendonce.wiring.house import time_zone

    return time_zone(settings)


def find_mailout(store: Store, name: str) -> Mailout:
    """As a person at this installation's keyboard calls it."""
    from sendonce.flows.mailouts.find_mailout import find_mailout

    return find_mailout(store, DEFAULT_TENANT, name)
