"""The archive on a real directory."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.archive import directory
from sendonce.adapters.archive.directory import DirectoryArchive
from sendonce.errors import NotFound, Unavailable

NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_record_is_a_compressed_file_of_its_day(tmp_path: Path) -> None:
    """It is found by kind, day and name, for its owner's eyes only, and no draft stays beside it."""
    folder = tmp_path / "archive"
    place = DirectoryArchive(folder).keep("events", "batch-1", b"what came", NOON)
    assert files(folder) == ["events/2026-03-05/batch-1.gz"]
    assert gzip.decompress(Path(place).read_bytes()) == b"what came"
    assert Path(place).stat().st_mode & 0o777 == 0o600
    assert Path(place).parent.stat().st_mode & 0o777 == 0o700


def test_the_day_is_that_of_utc(tmp_path: Path) -> None:
    """Half past midnight in Moscow is the day before."""
    moscow = timezone(timedelta(hours=3))
    DirectoryArchive(tmp_path).keep("events", "a", b"", datetime(2026, 3, 6, 0, 30, tzinfo=moscow))
    assert files(tmp_path) == ["events/2026-03-05/a.gz"]


def test_keeping_again_changes_nothing(tmp_path: Path) -> None:
    """Whoever died between the file and the rows does the same again."""
    archive = DirectoryArchive(tmp_path)
    place = archive.keep("events", "a", b"x" * 100, NOON)
    first = Path(place).read_bytes()
    assert archive.keep("events", "a", b"x" * 100, NOON) == place
    assert Path(place).read_bytes() == first
    assert len(files(tmp_path)) == 1


def test_nothing_is_kept_before_the_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is synced before it gets its name, and each directory that may be new after it."""
    synced: list[str] = []
    real_sync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real_sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    DirectoryArchive(tmp_path / "archive").keep("events", "a", b"", NOON)
    draft, *directories = synced
    day = tmp_path / "archive" / "events" / "2026-03-05"
    assert draft.startswith(f"{day}/.")
    assert directories == [str(path) for path in (day, day.parent, day.parent.parent, tmp_path)]


def test_a_failed_sync_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows must stay, so it is an error; the draft is gone."""

    def broken(path: Path, content: bytes) -> None:
        path.write_bytes(content)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory, "write_durably", broken)
    with pytest.raises(Unavailable, match=r"No space left on device\. Nothing was removed"):
        DirectoryArchive(tmp_path).keep("events", "a", b"", NOON)
    assert files(tmp_path) == []


def test_only_days_that_are_over_are_pruned(tmp_path: Path) -> None:
    """The day of the bound stays whole; other kinds and what is not ours stay too."""
    archive = DirectoryArchive(tmp_path)
    for days in range(4):
        archive.keep("events", f"n{days}", b"", NOON - timedelta(days=days))
    archive.keep("searches", "old", b"", NOON - timedelta(days=300))
    (tmp_path / "events" / "2026-03-02" / ".left-by-a-killed-process").write_bytes(b"half")
    (tmp_path / "events" / "notes").mkdir()
    assert archive.prune("events", NOON - timedelta(days=1)) == 2
    left = ["events/2026-03-04/n1.gz", "events/2026-03-05/n0.gz", "searches/2025-05-09/old.gz"]
    assert files(tmp_path) == left
    assert (tmp_path / "events" / "notes").is_dir()
    assert archive.prune("unknown", NOON) == 0


@given(name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_a_name_from_outside_is_a_name(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """Never a path, never hidden, never pruned away as a draft."""
    folder = tmp_path_factory.mktemp("archive")
    place = Path(DirectoryArchive(folder).keep("events", name, b"", NOON))
    assert place.parent == folder / "events" / "2026-03-05"
    assert not place.name.startswith(".")
    assert place.is_file()


def test_a_kind_is_ours_to_choose(tmp_path: Path) -> None:
    """A slip in it would write outside of the folder."""
    with pytest.raises(ValueError, match="no kind of record"):
        DirectoryArchive(tmp_path).keep("../events", "a", b"", NOON)


def test_a_record_is_read_from_its_place(tmp_path: Path) -> None:
    """A place outside, such as another machine's, has none, and a damaged file is none."""
    archive = DirectoryArchive(tmp_path / "archive")
    place = archive.keep("serp", "a.xml", b"what came", NOON)
    assert archive.read(place) == b"what came"
    (tmp_path / "outside.gz").write_bytes(gzip.compress(b"not ours"))
    for elsewhere in (str(tmp_path / "outside.gz"), place + "x", "", f"{tmp_path}/archive/../outside.gz"):
        with pytest.raises(NotFound):
            archive.read(elsewhere)
    Path(place).write_bytes(b"no gzip")
    with pytest.raises(NotFound):
        archive.read(place)
