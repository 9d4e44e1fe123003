"""What a client may take of the service: bytes of a head, seconds, connections; and what it may send."""

from __future__ import annotations

import http.client
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from sendonce.entrypoints.http import connections
from sendonce.entrypoints.http.connections import ConnectionLimits
from tests.adapters.http_stage import SECRET, HttpStage, serving
from tests.conftest import sqlite_copy

QUICK = ConnectionLimits(connections=8, head_seconds=0.3, body_seconds=0.3, read_seconds=0.3, look_every=0.02)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"POST /send-mailout HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def service(migrated_sqlite: Path) -> Iterator[HttpStage]:
    with sqlite_copy(migrated_sqlite) as url, serving(url) as stage:
        yield stage


@pytest.fixture
def hasty(sqlite_url: str) -> Iterator[HttpStage]:
    """A service that waits for nobody, with room for eight connections."""
    with serving(sqlite_url, limits=QUICK) as stage:
        yield stage


def connect(service: HttpStage) -> socket.socket:
    return socket.create_connection(("127.0.0.1", service.port), timeout=10)


def sent(service: HttpStage, *pieces: bytes) -> bytes:
    """All that the service says to these bytes before it hangs up."""
    with connect(service) as client:
        try:
            for piece in pieces:
                client.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough
        return heard(client)


def heard(client: socket.socket) -> bytes:
    answer = b""
    try:
        while piece := client.recv(65536):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# -- time ------------------------------------------------------------------------------------------


def test_a_head_that_does_not_end_is_ended(hasty: HttpStage) -> None:
    """One that has begun gets 408; a client that says nothing is hung up on."""
    for unfinished in (b"GET /healthz HT", HEALTH[:-2], HEALTH[:-2] + b"X: y\r\n"):
        answer = sent(hasty, unfinished)
        assert status_of(answer) == 408
        assert b"connection: close" in answer
    assert sent(hasty) == b""


def test_a_head_that_drips_is_ended(hasty: HttpStage) -> None:
    """A byte now and then keeps no connection alive, before the first request or after one."""
    for first in (b"", HEALTH):
        with connect(hasty) as client:
            client.sendall(first + b"GET / HTTP/1.1\r\n")
            ends = time.monotonic() + 30
            with pytest.raises(OSError, match=r"Broken pipe|reset"):  # noqa: PT012
                while time.monotonic() < ends:
                    client.sendall(b"a")
                    client.settimeout(0.02)
                    with suppress(TimeoutError):
                        client.recv(4096)


def test_a_body_that_does_not_end_is_ended(hasty: HttpStage) -> None:
    """Also one that nobody wants to read."""
    assert sent(hasty, b"POST /send-mailout HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{") == b""
    answer = sent(hasty, b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{")
    assert status_of(answer) == 200


def test_a_connection_that_is_kept_alive_may_rest(hasty: HttpStage) -> None:
    """Between two requests there is more time than for one, and empty lines do not begin one."""
    client = http.client.HTTPConnection("127.0.0.1", hasty.port, timeout=10)
    for _ in range(3):
        client.request("GET", "/healthz")
        response = client.getresponse()
        assert (response.status, response.read()) == (200, b'{"status": "ok"}')
        client.sock.sendall(b"\r\n")
        time.sleep(0.4)  # longer than a head may take
    client.close()


# -- connections -----------------------------------------------------------------------------------


def test_who_keeps_the_service_waiting_loses_his_place_to_others(sqlite_url: str) -> None:
    """Eight places and sixty connections that never finish: everybody else is served at once."""
    patient = ConnectionLimits(connections=8)
    with serving(sqlite_url, limits=patient) as service, ExitStack() as stack:
        squatters = []
        for _ in range(60):
            squatters.append(stack.enter_context(connect(service)))
            squatters[-1].sendall(b"GET / HTTP/1.1\r\nX: ")
            assert service.ask("GET", "/healthz").status == 200
        assert heard(squatters[0]) == b"", "the first of them should have lost its place"


def test_a_connection_at_rest_goes_after_one_that_never_began(sqlite_url: str) -> None:
    """A proxy's connections outlast a flood of unfinished heads."""
    with serving(sqlite_url, limits=ConnectionLimits(connections=8)) as service, ExitStack() as stack:
        client = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
        stack.callback(client.close)
        client.request("GET", "/healthz")
        assert client.getresponse().read()
        for _ in range(40):
            stack.enter_context(connect(service)).sendall(b"GET / HTTP/1.1\r\nX: ")
            assert service.ask("GET", "/healthz").status == 200
        client.request("GET", "/healthz")
        assert client.getresponse().status == 200


def test_descriptors_are_kept_back_for_ourselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database, the files and the connections that carry letters come first."""
    for files, letters, room in [(1024, 100, 764), (100_000, 100, 1024), (256, 500, 32), (-1, 1, 1024)]:
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert connections.connections_beside(letters) == room


# -- size ------------------------------------------------------------------------------------------

LONG = 70 * 1024


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (414, b"GET /" + b"a" * LONG + b" HTTP/1.1\r\nHost: a\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * LONG + b"\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a" * LONG + b": x\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 200 + b"\r\n"),
        (431, CHUNKED + b"1;" + b"a" * LONG + b"\r\n{\r\n0\r\n\r\n"),
        (431, CHUNKED + b"0\r\nX: " + b"a" * LONG + b"\r\n\r\n"),
        (431, CHUNKED + b"0\r\n" + b"a: b\r\n" * 200 + b"\r\n"),
        (431, CHUNKED + b"1\r\n{\r\n" * 20_000),
    ],
    ids=["address", "value", "name", "many", "chunk extension", "trailer", "many trailers", "tiny chunks"],
)
def test_a_head_is_cut_at_64_kilobytes(service: HttpStage, status: int, request_: bytes) -> None:
    """Whatever it is made of, in one piece or in many; the client gets to read why."""
    assert status_of(sent(service, request_)) == status
    pieces = [request_[at : at + 4096] for at in range(0, len(request_), 4096)]
    assert status_of(sent(service, *pieces)) == status


def test_a_long_head_that_is_within_the_limit_is_taken(service: HttpStage) -> None:
    """Cookies of a whole company's domain, say; and of a body only its frame counts."""
    long = {"X-Long": "a" * 60_000}
    assert service.ask("GET", "/healthz", headers=long).status == 200
    body = {"mailout_id": "x" * 200_000, "auth_token": SECRET}
    answer = service.ask("POST", "/send-mailout", body, {**long, "X-Mailout-Token": SECRET})
    assert answer.status == 400


# -- shapes ----------------------------------------------------------------------------------------

POST = b"POST /send-mailout HTTP/1.1\r\nHost: a\r\n"
AMBIGUOUS = {
    "length and chunks": POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
    "a list of lengths": POST + b"Content-Length: 4, 4\r\n\r\nabcd",
    "a signed length": POST + b"Content-Length: +4\r\n\r\nabcd",
    "chunks twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks not last": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "another encoding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "no encoding at all": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded line": POST + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: a\n\n",
    "a bare carriage return": b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\rY: b\r\n\r\n",
    "NUL": b"GET /healthz HTTP/1.1\r\nHost: a\x00\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a chunk size with a sign": CHUNKED + b"-4\r\nabcd\r\n0\r\n\r\n",
    "a chunk size in C": CHUNKED + b"0x4\r\nabcd\r\n0\r\n\r\n",
    "a chunk size that overflows": CHUNKED + b"11111111111111111\r\nabcd\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED + b"4\r\nabcde\r\n0\r\n\r\n",
    "a chunk extension with a line feed": CHUNKED + b"4;a\nabcd\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_two_servers_may_read_in_two_ways_is_refused(service: HttpStage, name: str) -> None:
    """With one answer, after which the connection ends: what follows is not taken for a request."""
    answer = sent(service, AMBIGUOUS[name] + b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
    assert status_of(answer) in (400, 501, 505)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer


def test_a_trailer_is_no_header(service: HttpStage) -> None:
    """The secret after the body opens nothing: a proxy that checks headers has not seen it."""
    body = b'{"mailout_id": "a"}'
    request = CHUNKED.replace(b"Host: a", b"Host: a\r\nConnection: close")
    trailer = b"X-Mailout-Token: " + SECRET.encode()
    request += b"%x\r\n%s\r\n0\r\n%s\r\n\r\n" % (len(body), body, trailer)
    assert status_of(sent(service, request)) == 401


def test_a_few_requests_may_come_at_once_and_a_thousand_may_not(service: HttpStage) -> None:
    """Each that waits costs memory before it costs its sender anything."""
    last = HEALTH.replace(b"Host", b"Connection: close\r\nHost")
    answer = sent(service, HEALTH * 4 + last)
    assert answer.count(b"HTTP/1.1 200 ") == 5
    assert sent(service, HEALTH * 1000).count(b"HTTP/1.1 200 ") < 20


def test_an_upgrade_is_answered_as_any_other_request(service: HttpStage) -> None:
    """What follows it is not HTTP any more, and is not read."""
    upgrade = HEALTH.replace(b"Host", b"Connection: upgrade\r\nUpgrade: h2c\r\nHost")
    answer = sent(service, upgrade + HEALTH)
    assert status_of(answer) == 200
    assert answer.count(b"HTTP/1.1 ") == 1
