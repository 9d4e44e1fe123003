"""GET /assets/{sha256}: whole, in part, in pieces, and to readers who do not read."""

from __future__ import annotations

import hashlib
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress

import pytest

from sendonce.entrypoints.http import assets
from sendonce.entrypoints.http.connections import ConnectionLimits
from tests.adapters.http_stage import HttpStage, serving

CONTENT = bytes(range(256)) * 400
NAME = hashlib.sha256(CONTENT).hexdigest()
HASTY = ConnectionLimits(read_seconds=1.0, look_every=0.02)


@pytest.fixture
def service(sqlite_url: str) -> Iterator[HttpStage]:
    with serving(sqlite_url) as stage:
        stage.store.assets.put(NAME, "image/png", CONTENT)
        yield stage


def large(service: HttpStage, number: int, megabytes: int = 4) -> str:
    name = f"{number:064x}"
    service.store.assets.put(name, "image/jpeg", bytes([number]) * (megabytes * 2**20))
    return name


def unread(service: HttpStage, name: str, buffer: int = 64 * 1024) -> socket.socket:
    """A reader who asks for an asset and takes none of it."""
    client = socket.socket()
    client.settimeout(20)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.connect(("127.0.0.1", service.port))
    client.sendall(f"GET /assets/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert select.select([client], [], [], 10)[0]
    return client


def test_an_asset_is_the_same_for_ever(service: HttpStage) -> None:
    """Any cache may keep it; whoever has it already is told so."""
    answer = service.ask("GET", f"/assets/{NAME}")
    assert (answer.status, answer.body) == (200, CONTENT)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    known = service.ask("GET", f"/assets/{NAME}", headers={"If-None-Match": answer.headers["etag"]})
    assert (known.status, known.body) == (304, b"")


def test_head_tells_the_length_and_sends_nothing(service: HttpStage) -> None:
    """And the connection is good for another request."""
    answer = service.ask("HEAD", f"/assets/{NAME}")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert service.ask("HEAD", f"/assets/{'0' * 64}").status == 404


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=100000-", slice(100_000, None)),
        ("bytes=-5", slice(-5, None)),
        ("bytes=-999999", slice(None)),
        ("bytes=40000-80000", slice(40_000, 80_001)),
        ("bytes=102399-999999", slice(102_399, None)),
        ("bytes=0-1,5-9", slice(None)),
        ("bytes=9-5", slice(None)),
        ("lines=1-2", slice(None)),
        ("bytes=-", slice(None)),
    ],
)
def test_a_part_may_be_asked_for(service: HttpStage, asked: str, part: slice) -> None:
    """What is not one plain range gets all of it, as it may."""
    answer = service.ask("GET", f"/assets/{NAME}", headers={"Range": asked})
    assert answer.body == CONTENT[part]
    assert answer.status == (200 if answer.body == CONTENT else 206)
    if answer.status == 206:
        first, last, _ = part.indices(len(CONTENT))
        assert answer.headers["content-range"] == f"bytes {first}-{last - 1}/{len(CONTENT)}"


def test_a_part_that_is_not_there_is_refused(service: HttpStage) -> None:
    """With the size, as RFC 9110 has it; and a part of another version is not given."""
    for asked in ("bytes=102400-", "bytes=999999-1000000", "bytes=-0"):
        answer = service.ask("GET", f"/assets/{NAME}", headers={"Range": asked})
        assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{len(CONTENT)}")
    other = {"Range": "bytes=0-9", "If-Range": '"another"'}
    assert service.ask("GET", f"/assets/{NAME}", headers=other).status == 200


def test_a_reader_who_does_not_read_is_hung_up_on(sqlite_url: str) -> None:
    """And one who reads slowly gets all of it, however long it takes."""
    with (
        serving(sqlite_url, limits=HASTY) as service,
        unread(service, name := large(service, 1)) as idle,
        unread(service, name) as slow,
    ):
        got = 0
        while got < 4 * 2**20:
            piece = slow.recv(64 * 1024)
            assert piece, f"cut off after {got} bytes"
            got += len(piece)
            time.sleep(0.03)  # 2 MB in the time in which the other is hung up on
        received = 0
        with suppress(ConnectionResetError):
            while piece := idle.recv(65536):
                received += len(piece)
        assert received < 2 * 2**20


def test_readers_are_counted_and_room_is_bounded(service: HttpStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many readers, or too many assets in use: 503. What nobody reads makes room."""
    monkeypatch.setattr(assets, "_SHELF_BYTES", 9 * 2**20)
    monkeypatch.setattr(assets, "_MOST_READERS", 3)
    names = [large(service, number) for number in range(1, 5)]
    for name in names:
        assert service.ask("GET", f"/assets/{name}").status == 200
    with ExitStack() as stack:
        for name in names[:2]:
            stack.enter_context(unread(service, name))
        full = service.ask("GET", f"/assets/{names[2]}")
        assert (full.status, full.headers["retry-after"]) == (503, "5")
        stack.enter_context(unread(service, names[0]))
        assert service.ask("GET", f"/assets/{names[0]}").status == 503
        assert service.ask("GET", "/healthz").status == 200


def test_an_asset_that_many_ask_for_is_fetched_once(
    service: HttpStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they all ask before it is there."""
    name, assets = large(service, 1), service.store.assets
    get, fetched = assets.get, []

    def slowly(wanted: str) -> tuple[str, bytes] | None:
        fetched.append(wanted)
        everybody_asks.wait(5)
        return get(wanted)

    monkeypatch.setattr(assets, "get", slowly)
    everybody_asks = threading.Event()
    with ThreadPoolExecutor(4) as readers:
        asked = [readers.submit(service.ask, "GET", f"/assets/{name}") for _ in range(4)]
        assert wait(asked, timeout=0.5, return_when=FIRST_COMPLETED).done == set()
        everybody_asks.set()
        assert [reader.result().status for reader in asked] == [200] * 4
    assert fetched == [name]
