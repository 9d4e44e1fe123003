"""An archive in a directory of this machine: ``<kind>/<day>/<name>.gz``."""

from __future__ import annotations

import gzip
import uuid
import zlib
from datetime import datetime
from pathlib import Path

from sendonce.adapters.archive.names import checked_kind, day_of, file_name, is_day
from sendonce.adapters.files.durable import sync_directory, write_durably
from sendonce.errors import NotFound, Unavailable


class DirectoryArchive:
    """ports.Archive in a folder that is made when the first record comes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, kind: str, name: str, data: bytes, at: datetime) -> str:
        day = self._of_kind(kind) / day_of(at)
        path, draft = day / file_name(name), day / f".{uuid.uuid4()}"
        try:
            day.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                write_durably(draft, gzip.compress(data, mtime=0))
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            # The directories may be as new as the file.
            for directory in (day, day.parent, self._folder, self._folder.parent):
                sync_directory(directory)
        except OSError as exc:
            raise Unavailable(
                f"The archive cannot keep {path}: {exc.strerror}. Nothing was removed; make room, or set "
                "ARCHIVE_URL to a place that can be written."
            ) from exc
        return str(path)

    def read(self, place: str) -> bytes:
        path = Path(place)
        try:
            if path.is_relative_to(self._folder) and ".." not in path.parts:
                return gzip.decompress(path.read_bytes())
        except (FileNotFoundError, gzip.BadGzipFile, EOFError, zlib.error):
            pass
        except OSError as exc:
            raise Unavailable(f"The archive cannot read {path}: {exc.strerror}.") from exc
        raise NotFound(f"The archive {self._folder} has no {place}.")

    def prune(self, kind: str, before: datetime) -> int:
        first_kept = day_of(before)
        try:
            return sum(_remove(day) for day in self._days(kind) if day.name < first_kept)
        except OSError as exc:
            raise Unavailable(
                f"Old files in {self._of_kind(kind)} cannot be removed: {exc.strerror}."
            ) from exc

    def _days(self, kind: str) -> list[Path]:
        folder = self._of_kind(kind)
        return [day for day in folder.iterdir() if is_day(day.name)] if folder.is_dir() else []

    def _of_kind(self, kind: str) -> Path:
        return self._folder / checked_kind(kind)


def _remove(day: Path) -> int:
    """What a killed process left half written goes too, uncounted."""
    files = list(day.iterdir())
    for file in files:
        file.unlink()
    day.rmdir()
    return sum(not file.name.startswith(".") for file in files)
