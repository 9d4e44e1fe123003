"""Every archive keeps what ports.Archive promises: in a directory, and in a bucket of S3.

The bucket is played by the sandbox, and asked through the client that AWS ships.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sendonce.errors import NotFound, Unavailable
from sendonce.ports.engine import Archive
from sendonce.settings import load_settings
from sendonce.wiring.archive import archive
from tests.adapters.sandbox_stage import Sandbox

NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)
DAY = timedelta(days=1)
Open = Callable[[str], Archive]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    stage = Sandbox(tmp_path_factory.mktemp("s3"), {})
    yield stage
    stage.stop()


@pytest.fixture(params=("directory", "bucket"))
def open_archive(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """An archive at a place of this name, as settings describe it."""
    if request.param == "directory":
        return lambda name: archive(load_settings({"ARCHIVE_URL": str(tmp_path / name)}, dotenv=None))
    stage: Sandbox = request.getfixturevalue("sandbox")
    return lambda name: at_bucket(stage, f"s3://bucket/{tmp_path.name}/{name}")


def at_bucket(stage: Sandbox, url: str, **more: str) -> Archive:
    environment = {**stage.addresses["environment"], "ARCHIVE_URL": url, **more}
    return archive(load_settings(environment, dotenv=None))


def test_what_is_kept_can_be_read(open_archive: Open) -> None:
    """Whatever is in its name; keeping it again changes nothing."""
    here = open_archive("a")
    for name in ("events 1.jsonl", "../../etc/passwd", ".hidden", "имя+&?#", "x" * 60):
        place = here.keep("events", name, name.encode(), NOON)
        assert here.keep("events", name, name.encode(), NOON) == place
        assert here.read(place) == name.encode()


def test_old_days_are_pruned_of_their_kind_alone(open_archive: Open) -> None:
    here = open_archive("a")
    old = [here.keep("events", f"{n}", b"old", NOON - DAY) for n in range(3)]
    kept = [here.keep("events", "new", b"new", NOON), here.keep("reports", "old", b"new", NOON - DAY)]
    assert here.prune("events", NOON) == 3
    assert here.prune("events", NOON) == 0
    assert [here.read(place) for place in kept] == [b"new", b"new"]
    for place in old:
        with pytest.raises(NotFound):
            here.read(place)


def test_another_archives_record_is_not_read(open_archive: Open) -> None:
    place = open_archive("a").keep("events", "1", b"secret", NOON)
    for other in (open_archive("b"), open_archive("a/b")):
        with pytest.raises(NotFound):
            other.read(place)


def test_more_records_than_fit_a_page_are_pruned(sandbox: Sandbox) -> None:
    """S3 lists a thousand at a time."""
    client = sandbox.client("s3", region_name="us-east-1")
    for number in range(1003):
        client.put_object(Bucket="many", Key=f"events/2026-03-04/{number}.gz", Body=b"")
    client.put_object(Bucket="many", Key="events/2026-03-05/1.gz", Body=b"")
    assert at_bucket(sandbox, "s3://many").prune("events", NOON) == 1003
    assert [item["Key"] for item in client.list_objects_v2(Bucket="many")["Contents"]] == [
        "events/2026-03-05/1.gz"
    ]


def test_a_bucket_that_refuses_loses_nothing(sandbox: Sandbox) -> None:
    """The trouble is told with the place and what to do; the rows stay in the database then."""
    refused = at_bucket(sandbox, "s3://bucket", AWS_SECRET_ACCESS_KEY="wrong")
    with pytest.raises(Unavailable, match=r"s3://bucket/events/2026-03-05/1.gz.*Nothing was lost"):
        refused.keep("events", "1", b"", NOON)
