"""Settings in, the archive out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.engine import Archive, EngineStore

ARCHIVE_EVERY = 300.0


def archive(settings: Settings) -> Archive:
    """Beside the locks and journals of this machine: old records, compressed."""
    from sendonce.adapters.archive.directory import DirectoryArchive

    return DirectoryArchive(settings.state_dir / "archive")


def make_archive_chore(settings: Settings, store: EngineStore) -> Chore:
    """Now and then, the raw text of old events leaves the database."""
    from sendonce.flows.engine.archive_events import ArchiveRules, archive_events

    days = settings.archive_keep_days
    in_archive = timedelta(days=days) if days else None
    rules = ArchiveRules(timedelta(days=settings.events_keep_days), in_archive)

    def run() -> None:
        archive_events(store, archive(settings), rules)

    return ARCHIVE_EVERY, run
