"""The maildir transport on a real directory."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from sendonce.adapters.transports import maildir
from sendonce.adapters.transports.maildir import MaildirTransport, file_name
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Refused
from tests.adapters.smtp_server import ListFeed, letter


def test_letters_become_files_under_the_name_of_their_job(tmp_path: Path) -> None:
    """Each letter is one file in new/, byte for byte, found by job and attempt; tmp/ is left empty."""
    parcels = [letter(n) for n in range(20)]
    feed = ListFeed(parcels)
    asyncio.run(MaildirTransport(tmp_path / "mail").carry(feed, 3))
    for parcel in parcels:
        name = file_name(parcel.job_id, parcel.attempt)
        assert feed.outcomes[parcel.job_id] == Accepted(name)
        assert (tmp_path / "mail" / "new" / name).read_bytes() == parcel.content
    assert len(list((tmp_path / "mail" / "new").iterdir())) == 20
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "mail" / "new").iterdir()} == {0o600}
    assert list((tmp_path / "mail" / "tmp").iterdir()) == []
    assert feed.most_on_wire <= 3


def test_a_parcel_that_may_not_be_sent_is_not_written(tmp_path: Path) -> None:
    """wire() said no: no file."""
    feed = ListFeed([letter(0), letter(1)], stale=["job-0"])
    asyncio.run(MaildirTransport(tmp_path).carry(feed, 1))
    assert [path.name for path in (tmp_path / "new").iterdir()] == [file_name("job-1", 1)]
    assert feed.given_back == ["job-0"]


def test_a_hostile_job_id_stays_in_the_maildir(tmp_path: Path) -> None:
    """A job id is a name, never a path."""
    parcel = letter(0)
    parcel.job_id = "../../etc/x:y"
    feed = ListFeed([parcel])
    asyncio.run(MaildirTransport(tmp_path).carry(feed, 1))
    assert len(list((tmp_path / "new").iterdir())) == 1
    assert ":" not in next((tmp_path / "new").iterdir()).name


def test_a_place_that_cannot_be_written_defers(tmp_path: Path) -> None:
    """A file where the directory should be: no letter's fault, nothing is lost."""
    (tmp_path / "mail").write_text("in the way")
    feed = ListFeed([letter(0)])
    asyncio.run(MaildirTransport(tmp_path / "mail").carry(feed, 1))
    outcome = feed.outcomes["job-0"]
    assert isinstance(outcome, Deferred)
    assert outcome.throttle
    assert outcome.code in {"ENOTDIR", "EEXIST"}


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    """That letter can never be written."""
    parcel = letter(0)
    parcel.job_id = "x" * 300
    feed = ListFeed([parcel])
    asyncio.run(MaildirTransport(tmp_path).carry(feed, 1))
    assert isinstance(feed.outcomes[parcel.job_id], Refused)


def test_a_full_disk_defers_and_leaves_no_half_a_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ENOSPC before the rename: deferred, and the draft is gone."""

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    feed = ListFeed([letter(0)])
    asyncio.run(MaildirTransport(tmp_path).carry(feed, 1))
    outcome = feed.outcomes["job-0"]
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.throttle) == ("ENOSPC", True)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert list((tmp_path / "new").iterdir()) == []


def test_a_directory_that_cannot_be_synced_is_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The letter is there, but a power failure may take it away again."""

    def broken(_path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(maildir, "sync_directory", broken)
    feed = ListFeed([letter(0)])
    asyncio.run(MaildirTransport(tmp_path).carry(feed, 1))
    assert isinstance(feed.outcomes["job-0"], InDoubt)


def test_cancelling_waits_for_the_letter_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread cannot be stopped, so its true outcome is settled instead of a doubt."""
    real_sync = maildir.sync_directory

    async def main() -> None:
        loop, writing = asyncio.get_running_loop(), asyncio.Event()

        def slow(path: Path) -> None:
            loop.call_soon_threadsafe(writing.set)
            real_sync(path)

        monkeypatch.setattr(maildir, "sync_directory", slow)
        work = asyncio.create_task(MaildirTransport(tmp_path).carry(feed, 1))
        await writing.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    feed = ListFeed([letter(0)])
    asyncio.run(main())
    assert not feed.unsettled
    assert feed.outcomes["job-0"] == Accepted(file_name("job-0", 1))
