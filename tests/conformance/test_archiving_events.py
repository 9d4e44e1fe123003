"""Raw text of old events leaves the database for the archive, and nothing else of them does."""

from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sendonce.adapters.archive.directory import DirectoryArchive
from sendonce.domain.engine.events import EventKind, EventVerdict
from sendonce.errors import Unavailable
from sendonce.flows.engine import archive_events as flow
from sendonce.flows.engine.archive_events import ArchiveRules, archive_events
from tests.conformance.backdoor import pass_time
from tests.conformance.stage import ACCEPTED, Stage, event_of

DAY = 86_400.0
RULES = ArchiveRules(in_database=timedelta(days=90), in_archive=timedelta(days=90))


def archived(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.rglob("*.gz"))
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def raws(stage: Stage) -> list[object]:
    return [event.raw for event in stage.store.events.all()]


@pytest.fixture
def letters(stage: Stage) -> Stage:
    """Three letters that were sent a hundred days ago, each with its event, and one of today."""
    stage.running(4)
    old = stage.claim(limit=3).claimed
    for job in old:
        stage.settle(job, ACCEPTED)
        stage.event(
            job, EventKind.BOUNCE, event_id=f"old {job.id}", natural_key=f"old {job.id}", reason="full"
        )
    pass_time(stage.store, 100 * DAY)
    (today,) = stage.claim().claimed
    stage.event(today, event_id="new", natural_key="new")
    return stage


def test_old_text_goes_and_what_it_said_stays(letters: Stage, tmp_path: Path) -> None:
    before = letters.store.events.all()
    assert archive_events(letters.store, DirectoryArchive(tmp_path), RULES) == 3
    assert sorted(map(len, map(str, raws(letters)))) == sorted([len(str(before[0].raw)), 2, 2, 2])
    kept = archived(tmp_path)
    assert [line["raw"] for line in kept] == [event.raw for event in reversed(before[1:])]
    assert {line["kind"] for line in kept} == {"bounce"}
    after = letters.store.events.all()
    assert [(e.event_id, e.natural_key, e.kind, e.reason) for e in after] == [
        (e.event_id, e.natural_key, e.kind, e.reason) for e in before
    ]


def test_a_late_copy_is_still_known(letters: Stage, tmp_path: Path) -> None:
    job = letters.store.jobs.list(limit=1)[0]
    archive_events(letters.store, DirectoryArchive(tmp_path), RULES)
    again = event_of(job, EventKind.BOUNCE, event_id="another carrier", natural_key=f"old {job.id}")
    assert letters.record(again) == EventVerdict.DUPLICATE_EVENT


def test_the_second_round_finds_nothing(
    letters: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In chunks as well as at once, and the file of each is its own."""
    monkeypatch.setattr(flow, "CHUNK", 2)
    archive = DirectoryArchive(tmp_path)
    assert archive_events(letters.store, archive, RULES) == 3
    assert len(list(tmp_path.rglob("*.gz"))) == 2
    assert archive_events(letters.store, archive, RULES) == 0
    assert len(archived(tmp_path)) == 3


class FullDisk(DirectoryArchive):
    def keep(self, kind: str, name: str, data: bytes, at: datetime) -> str:
        raise Unavailable("The disk is full.")


def test_what_cannot_be_archived_stays(letters: Stage, tmp_path: Path) -> None:
    before = raws(letters)
    with pytest.raises(Unavailable):
        archive_events(letters.store, FullDisk(tmp_path), RULES)
    assert raws(letters) == before
    assert archive_events(letters.store, DirectoryArchive(tmp_path), RULES) == 3


def test_whoever_comes_second_drops_nothing(letters: Stage) -> None:
    """Two processes that read the same events at the same moment."""
    now = letters.store.ledger.now()
    first = letters.store.events.raw_before(now - RULES.in_database, 10)
    assert len(first) == 3
    assert letters.store.events.drop_raw(first)
    assert not letters.store.events.drop_raw(first)
    assert letters.store.events.raw_before(now - RULES.in_database, 10) == []


def test_files_are_removed_in_their_turn(letters: Stage, tmp_path: Path) -> None:
    """After the days in the database and the days in the archive; or never."""
    archive = DirectoryArchive(tmp_path)
    archive_events(letters.store, archive, RULES)
    long_ago = letters.store.ledger.now() - timedelta(days=200)
    archive.keep("events", "older", b"", long_ago)
    archive_events(letters.store, archive, ArchiveRules(RULES.in_database, None))
    assert len(list(tmp_path.rglob("*.gz"))) == 2
    archive_events(letters.store, archive, RULES)
    assert len(archived(tmp_path)) == 3
