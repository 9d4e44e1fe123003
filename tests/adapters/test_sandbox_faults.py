"""The sandbox misbehaves as it is told, and its log says what really happened."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ConnectionClosedError

from tests.adapters.sandbox_stage import FAST, Sandbox, Stage, exchange, signed_request


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "world")
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for the tests that use addresses of their own and leave no faults behind."""
    stage = Stage(tmp_path_factory.mktemp("shared"))
    yield stage.sandbox(**FAST)
    stage.close()


def what_comes_back(sandbox: Sandbox, request: bytes) -> str:
    """In one word, what a client sees on a fresh connection."""
    with socket.create_connection(("127.0.0.1", sandbox.port), 10) as wire:
        wire.sendall(request)
        data = b""
        try:
            while chunk := wire.recv(65536):
                data += chunk
                head, blank, body = data.partition(b"\r\n\r\n")
                size = re.search(rb"Content-Length: (\d+)", head)
                if blank and size and len(body) == int(size[1]):
                    return head.split(b" ")[1].decode()
        except ConnectionResetError:
            return "reset"
    if not data:
        return "closed"
    return "cut" if data.startswith(b"HTTP/1.1 200") else "garbage"


FAULTS = [
    ("refuse", "400", 0),
    ("throttle", "429", 0),
    ("paused", "400", 0),
    ("error_before", "500", 0),
    ("reset_before", "reset", 0),
    ("hang_before", "closed", 0),
    ("ok", "200", 1),
    ("error_after", "500", 1),
    ("reset_after", "reset", 1),
    ("hang_after", "closed", 1),
    ("truncate", "cut", 1),
    ("garbage", "garbage", 1),
]


@pytest.mark.parametrize(("mode", "seen", "accepted"), FAULTS)
def test_fault_modes(shared: Sandbox, mode: str, seen: str, accepted: int) -> None:
    """Each mode looks to the client as it says, and the log tells whether the letter was taken."""
    to = f"{mode}@example.org"
    shared.post("faults", {"next": [mode], "hang_seconds": 0.05})
    assert what_comes_back(shared, signed_request(shared, to)) == seen
    assert len(shared.logged(to)) == accepted
    assert what_comes_back(shared, signed_request(shared, "afterwards@example.org")) == "200"


def test_boto3_sees_a_lost_reply(shared: Sandbox) -> None:
    """A reset after acceptance is an exception for the caller and a line in the log."""
    client = shared.client()
    shared.post("faults", {"next": ["reset_after"]})
    with pytest.raises(ConnectionClosedError):
        shared.send(client, "lost@example.org")
    client.close()
    assert len(shared.logged("lost@example.org")) == 1


def test_shares_are_kept_and_counted(stage: Stage) -> None:
    """Shares hit about as often as they say, the same seed hits the same, and stats tell how often."""
    runs = []
    for _ in range(2):
        sandbox = stage.sandbox(**FAST, seed=7, faults={"error_before": 0.3, "error_after": 0.3})
        request = signed_request(sandbox)
        before = len(sandbox.log())
        runs.append([exchange(sandbox, request)[0] for _ in range(60)])
        injected = sandbox.get("stats")["faults"]
        assert runs[-1].count(500) == injected["error_before"] + injected["error_after"]
        assert len(sandbox.log()) - before == 60 - injected["error_before"]
        assert 20 < runs[-1].count(500) < 52
        sandbox.stop()
    assert runs[0] == runs[1]


def test_slow_is_half_there_and_half_back(shared: Sandbox) -> None:
    """The letter is accepted in the middle of its latency."""
    shared.post("faults", {"slow": [200, 200], "error_status": 503})
    start = time.time()
    assert exchange(shared, signed_request(shared, "slow@example.org"))[0] == 200
    took = time.time() - start
    shared.post("faults", {"slow": [0, 0]})
    (row,) = shared.logged("slow@example.org")
    assert took >= 0.2
    assert start + 0.09 <= row["t"] <= start + took - 0.09


def test_faults_are_checked_and_cleared(shared: Sandbox) -> None:
    """A wrong word changes nothing and the answer lists the right ones; DELETE clears all."""
    for wrong in (
        {"refuse": 0.5, "explode": 1},
        {"refuse": 2},
        {"refuse": 0.6, "throttle": 0.6},
        {"next": ["explode"]},
        {"slow": [9, 1]},
        {"events": {"late": "soon"}},
        [],
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            shared.post("faults", wrong)
        with caught.value as reply:
            assert reply.code == 400
            assert json.load(reply)["error"]
    assert shared.get("faults")["refuse"] == 0
    assert shared.post("faults", {"garbage": 1})["garbage"] == 1
    assert shared.post("faults", method="DELETE")["garbage"] == 0
