"""The SES transport's connections: kept, lost, refused, secured and cut off."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
import uvloop

from sendonce.adapters.aws import http1
from sendonce.adapters.aws.credentials import StaticCredentials
from sendonce.adapters.transports.ses import SesSettings, SesTransport
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Refused
from sendonce.domain.engine.parcels import Parcel
from sendonce.errors import BadInput
from tests.adapters.http_server import ScriptedServer, Step, accepted
from tests.adapters.ses_tray import KEYS, Tray, carry_by_script, raw_answer, ses_error, ses_transport


def test_a_silent_server_is_given_up() -> None:
    """No answer in time is doubt."""
    outcome = carry_by_script([Step(then="hang")], read_timeout=0.05).outcome
    assert isinstance(outcome, InDoubt)
    assert "no answer in" in outcome.reason


def test_one_connection_carries_many_letters() -> None:
    """Keep-alive: the letters of a lane share its connection, one after the other."""
    tray = carry_by_script([accepted(f"id-{n}") for n in range(20)], Tray(20))
    assert [tray.outcomes[f"job-{n}"] for n in range(20)] == [Accepted(f"id-{n}") for n in range(20)]
    assert tray.server.connections == 1


def test_letters_that_are_ready_follow_each_other_without_a_wait() -> None:
    """The lane waits for the first letter and for the end; a new connection between them is not a reason."""
    closing = raw_answer("HTTP/1.1 200 OK\nConnection: close\n", b'{"MessageId": "last"}')
    tray = carry_by_script([accepted(), closing, accepted(), accepted()], Tray(4))
    assert len(tray.outcomes) == 4
    assert tray.waits == 2


@pytest.mark.parametrize("verb", ["settle", "take_nowait", "wire"])
def test_errors_of_the_feed_reach_the_caller(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that fails is not swallowed by the event loop."""

    def fail(*_: object) -> None:
        raise RuntimeError("the ledger is gone")

    monkeypatch.setattr(Tray, verb, fail)
    with pytest.raises(RuntimeError, match="the ledger is gone"):
        carry_by_script([accepted(), accepted()], Tray(2))


def test_each_letter_has_the_whole_time_for_its_answer() -> None:
    """The time of the second one begins when it leaves, not with the first."""
    tray = Tray(2)
    tray.before_take = lambda: asyncio.sleep(0.2)
    carry_by_script([accepted("first"), Step(then="hang")], tray, read_timeout=0.3)
    assert tray.settled_at[1] - tray.wired_at[1] >= 0.3
    assert [type(tray.outcomes[f"job-{n}"]) for n in range(2)] == [Accepted, InDoubt]


def test_lanes_work_side_by_side() -> None:
    """With three connections, three letters wait for their answers at the same time."""
    together = Step(accepted().reply, together_with=3)
    tray = carry_by_script([together] * 3, Tray(3), connections=3)
    assert set(tray.outcomes.values()) == {Accepted("id-1")}
    assert tray.server.connections == 3


def test_trouble_of_one_letter_is_not_the_next_ones() -> None:
    """After a doubt the lane goes on with a new connection."""
    tray = carry_by_script([Step(then="reset"), accepted("next")], Tray(2))
    assert isinstance(tray.outcomes["job-0"], InDoubt)
    assert tray.outcomes["job-1"] == Accepted("next")


@pytest.mark.parametrize("closing", ["HTTP/1.1 200 OK\nConnection: close\n", "HTTP/1.0 200 OK\n"])
def test_a_server_may_end_the_connection(closing: str) -> None:
    """Connection: close is obeyed: the next letter gets a new connection and no doubt."""
    reply = raw_answer(closing + 'Content-Length: 17\n\n{"MessageId":"a"}', "keep")
    tray = carry_by_script([reply, accepted("b")], Tray(2))
    assert tray.outcomes == {"job-0": Accepted("a"), "job-1": Accepted("b")}
    assert tray.server.connections == 2


def test_an_answer_too_many_is_not_the_next_letters() -> None:
    """Bytes after an answer end the connection: they must not be taken for the answer to the next letter."""
    two = accepted("mine").reply + accepted("whose").reply
    tray = carry_by_script([Step(two), accepted("next")], Tray(2))
    assert tray.outcomes == {"job-0": Accepted("mine"), "job-1": Accepted("next")}


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_ended_while_idle_costs_no_doubt(
    then: str, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """The end of an idle connection is seen before the next letter is written, even if the loop was busy."""
    with ScriptedServer([Step(accepted("a").reply, then), accepted("b")]) as server:

        async def wait_for_the_end() -> None:
            """Blocks the loop until the server's thread is through with the connection."""
            server._threads[1].join(5)

        tray = Tray(2)
        tray.before_take = wait_for_the_end
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(ses_transport(server.url).carry(tray, 1))
    assert tray.outcomes == {"job-0": Accepted("a"), "job-1": Accepted("b")}


def test_a_long_idle_connection_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the idle limit a new connection is made."""
    monkeypatch.setattr(http1, "IDLE_LIMIT_SECONDS", 0.0)
    tray = carry_by_script([accepted()] * 3, Tray(3))
    assert tray.server.connections == 3


def test_an_early_refusal_ends_the_connection() -> None:
    """An answer that overtakes a long request counts; the rest of the request is not sent as the next one."""
    early = Step(ses_error(400, "MessageRejected", "too big").reply, "hang", read_body=False)
    tray = Tray(1, content=b"x" * 8_000_000)
    assert carry_by_script([early], tray).outcome == Refused("MessageRejected", "MessageRejected: too big")


def test_what_may_not_be_wired_is_dropped() -> None:
    """When wire() says no, nothing is written and nothing is settled."""
    tray = carry_by_script([], Tray(2, wire=False))
    assert tray.outcomes == {}
    assert tray.server.requests == []


@pytest.mark.parametrize("may_leave", [True, False])
def test_a_claim_that_grew_old_is_reaffirmed_before_the_wire(may_leave: bool) -> None:
    """Connecting took long: the letter leaves if the ledger still says so, and goes back otherwise."""
    tray = Tray()
    tray.stale, tray.reaffirm_says = True, may_leave
    carry_by_script([accepted()], tray)
    assert tray.reaffirmed == ["job-0"]
    assert len(tray.server.requests) == len(tray.outcomes) == (1 if may_leave else 0)


def test_no_connection_is_a_deferral() -> None:
    """Connection refused: proven not accepted, and the transport rests for five seconds."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    tray = Tray()
    asyncio.run(ses_transport(f"http://127.0.0.1:{port}").carry(tray, 1))
    outcome = tray.outcome
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.retry_after, outcome.throttle, tray.wired) == (
        "connect_failed",
        5,
        True,
        [],
    )


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def _tls_server(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def test_tls_with_a_trusted_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    """HTTPS works with an own CA file, many letters on one connection."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with ScriptedServer([accepted()] * 5, _tls_server(authority, "127.0.0.1")) as server:
        tray = Tray(5)
        asyncio.run(ses_transport(server.url, ca_file=tmp_path / "ca.pem").carry(tray, 1))
    assert list(tray.outcomes.values()) == [Accepted("id-1")] * 5
    assert server.connections == 1


@pytest.mark.parametrize("known", [True, False])
def test_tls_trouble_is_a_deferral(authority: trustme.CA, tmp_path: Path, known: bool) -> None:
    """An unknown authority or another host's certificate: no byte of the letter leaves."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = _tls_server(authority, "other.example" if known else "127.0.0.1")
    with ScriptedServer([], context) as server:
        tray = Tray()
        asyncio.run(ses_transport(server.url, ca_file=tmp_path / "ca.pem" if known else None).carry(tray, 1))
    assert isinstance(tray.outcome, Deferred)
    assert tray.outcome.code == "connect_failed"
    assert server.requests == []


def test_a_tls_handshake_that_hangs_is_a_deferral() -> None:
    """The connect timeout covers the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tray = Tray()
        transport = ses_transport(f"https://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.05)
        asyncio.run(transport.carry(tray, 1))
    assert isinstance(tray.outcome, Deferred)
    assert "did not answer in 0.05 s" in tray.outcome.reason


def test_cancelled_on_the_wire_is_in_doubt() -> None:
    """carry() cancelled while SES thinks: doubt."""

    async def scenario(url: str, tray: Tray) -> None:
        task = asyncio.create_task(ses_transport(url).carry(tray, 1))
        await tray.on_wire.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ScriptedServer([Step(then="hang")]) as server:
        tray = Tray()
        asyncio.run(scenario(server.url, tray))
    assert tray.outcome == InDoubt("the worker was stopped before SES answered")


def test_cancelled_before_the_wire_is_a_deferral() -> None:
    """carry() cancelled while connecting: the letter never left and may go at once."""

    async def scenario(listener: socket.socket, tray: Tray) -> None:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        task = asyncio.create_task(ses_transport(url).carry(tray, 1))
        peer, _ = await asyncio.to_thread(listener.accept)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        peer.close()

    tray = Tray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asyncio.run(scenario(listener, tray))
    outcome = tray.outcome
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.retry_after, outcome.throttle) == ("cancelled", 0, True)


def test_a_letter_that_was_to_follow_when_the_lane_was_stopped_never_left() -> None:
    """It was taken behind the last answer and waited for a new connection when the lane was cancelled."""

    async def scenario(url: str, tray: Tray) -> None:
        task = asyncio.create_task(ses_transport(url).carry(tray, 1))
        take_nowait = tray.take_nowait

        def take_and_cancel() -> Parcel | None:
            task.get_loop().call_soon(task.cancel)
            return take_nowait()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tray, "take_nowait", take_and_cancel)
            with pytest.raises(asyncio.CancelledError):
                await task

    closing = raw_answer('HTTP/1.1 200 OK\nConnection: close\nContent-Length: 18\n\n{"MessageId": "a"}')
    with ScriptedServer([closing]) as server:
        tray = Tray(2)
        asyncio.run(scenario(server.url, tray))
    assert tray.outcomes["job-0"] == Accepted("a")
    assert isinstance(tray.outcomes["job-1"], Deferred)
    assert tray.wired == ["job-0"]


def test_an_answer_that_meets_the_cancellation_counts() -> None:
    """When the answer is there but not yet looked at, cancelling must not turn it into doubt."""

    async def scenario(url: str, tray: Tray) -> None:
        task = asyncio.create_task(ses_transport(url).carry(tray, 1))
        original = http1.Connection._succeed

        def succeed_and_cancel(connection: http1.Connection, response: http1.Response) -> None:
            original(connection, response)
            task.cancel()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(http1.Connection, "_succeed", succeed_and_cancel)
            with pytest.raises(asyncio.CancelledError):
                await task

    with ScriptedServer([accepted("just in time")]) as server:
        tray = Tray()
        asyncio.run(scenario(server.url, tray))
    assert tray.outcome == Accepted("just in time")


@pytest.mark.parametrize(
    "url",
    [
        "http://email.eu-central-1.amazonaws.com",
        "http://127.0.0.1.evil.example",
        "https://user@host",
        "https://host/path",
        "https://host:99999",
        "ftp://127.0.0.1",
        "https://",
        "https://ho\nst",
        "https://ho st",
        " https://host",
    ],
)
def test_endpoints_that_are_refused(url: str) -> None:
    """Plain HTTP is for this machine only, and an endpoint is a host and a port."""
    with pytest.raises(BadInput, match="AWS_ENDPOINT_URL_SESV2"):
        ses_transport(url)


def test_the_default_endpoint_is_the_regions() -> None:
    """Without an endpoint the region names the host; a region that is not one is refused."""
    assert http1.Endpoint.parse("https://email.eu-central-1.amazonaws.com", "X").host_header.startswith(
        "email.eu"
    )
    assert http1.Endpoint.parse("http://[::1]:8080", "X").host_header == "[::1]:8080"
    with pytest.raises(BadInput, match="AWS_REGION"):
        SesTransport(SesSettings("evil.example/", StaticCredentials(KEYS)))
