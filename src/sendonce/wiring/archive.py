"""Settings in, the archive out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sendonce.settings import Settings
from sendonce.wiring.transports import aws_credentials

if TYPE_CHECKING:
    from sendonce.flows.engine.duties import Chore
    from sendonce.ports.engine import Archive, EngineStore

ARCHIVE_EVERY = 300.0


def archive(settings: Settings) -> Archive:
    """Old records, compressed: in a bucket, or beside the locks and journals of this machine."""
    if settings.archive_url.startswith("s3://"):
        from sendonce.adapters.archive.s3 import S3Archive, S3Settings

        bucket, _, prefix = settings.archive_url.removeprefix("s3://").partition("/")
        endpoint = settings.aws_endpoint_url_s3 or None
        credentials = aws_credentials(settings)
        return S3Archive(S3Settings(bucket, prefix.strip("/"), settings.aws_region, credentials, endpoint))
    from sendonce.adapters.archive.directory import DirectoryArchive

    folder = Path(settings.archive_url) if settings.archive_url else settings.state_dir / "archive"
    return DirectoryArchive(folder)


def make_archive_chore(settings: Settings, store: EngineStore) -> Chore:
    """Now and then, the raw text of old events leaves the database."""
    from sendonce.flows.engine.archive_events import ArchiveRules, archive_events
    from sendonce.flows.mailouts.write_due_reports import ARCHIVED as REPORTS

    days = settings.archive_keep_days
    in_archive = timedelta(days=days) if days else None
    rules = ArchiveRules(timedelta(days=settings.events_keep_days), in_archive, exports=(REPORTS,))

    def run() -> None:
        archive_events(store, archive(settings), rules)

    return ARCHIVE_EVERY, run
