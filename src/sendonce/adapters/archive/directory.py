"""An archive in a directory of this machine: ``<kind>/<day>/<name>.gz``."""

from __future__ import annotations

import gzip
import re
import uuid
import zlib
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from sendonce.adapters.files.durable import sync_directory, write_durably
from sendonce.errors import NotFound, Unavailable

_IS_KIND = re.compile("[a-z][a-z0-9-]*").fullmatch
_IS_DAY = re.compile(r"\d{4}-\d\d-\d\d").fullmatch


class DirectoryArchive:
    """ports.Archive in a folder that is made when the first record comes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, kind: str, name: str, data: bytes, at: datetime) -> str:
        day = self._of_kind(kind) / _day(at)
        path, draft = day / _file_name(name), day / f".{uuid.uuid4()}"
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
                "STATE_DIR to a place that can be written."
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
        first_kept = _day(before)
        try:
            return sum(_remove(day) for day in self._days(kind) if day.name < first_kept)
        except OSError as exc:
            raise Unavailable(
                f"Old files in {self._of_kind(kind)} cannot be removed: {exc.strerror}."
            ) from exc

    def _days(self, kind: str) -> list[Path]:
        folder = self._of_kind(kind)
        return [day for day in folder.iterdir() if _IS_DAY(day.name)] if folder.is_dir() else []

    def _of_kind(self, kind: str) -> Path:
        if not _IS_KIND(kind):
            raise ValueError(f"{kind!r} is no kind of record: small letters, digits and dashes make one.")
        return self._folder / kind


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def _remove(day: Path) -> int:
    """What a killed process left half written goes too, uncounted."""
    files = list(day.iterdir())
    for file in files:
        file.unlink()
    day.rmdir()
    return sum(not file.name.startswith(".") for file in files)


def _file_name(name: str) -> str:
    """Names come from outside too: whatever is in one, it is a file of this day and not a hidden one."""
    return quote(name, safe="").replace(".", "%2E", 1 if name.startswith(".") else 0) + ".gz"
