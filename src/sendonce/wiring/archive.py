"""Settings in, the archive out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sendonce.settings import Settings

if TYPE_CHECKING:
    from sendonce.ports.engine import Archive


def archive(settings: Settings) -> Archive:
    """Beside the locks and journals of this machine: old records, compressed."""
    from sendonce.adapters.archive.directory import DirectoryArchive

    return DirectoryArchive(settings.state_dir / "archive")
