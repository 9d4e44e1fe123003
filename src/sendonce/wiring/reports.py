"""Settings in, files for people out: reports and previews beside the state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sendonce.settings import Settings
from sendonce.wiring.archive import archive

if TYPE_CHECKING:
    from sendonce.domain.mailouts.previews import Preview
    from sendonce.ports.mailouts import Reports
    from sendonce.ports.store import Store


def report_files(settings: Settings) -> Reports:
    from sendonce.adapters.files.reports import ReportFolder

    return ReportFolder(settings.state_dir / "reports")


def write_due_reports(settings: Settings, store: Store) -> None:
    from sendonce.flows.mailouts.write_due_reports import write_due_reports

    write_due_reports(store, report_files(settings), archive(settings) if settings.archive_url else None)


def write_preview(settings: Settings, mailout_id: str, preview: Preview) -> Path:
    from sendonce.adapters.files.previews import write_preview

    return write_preview(settings.state_dir / "previews", mailout_id, preview)
