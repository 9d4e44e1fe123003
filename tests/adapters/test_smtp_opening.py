"""The way into an SMTP session (connecting, TLS, logging in) and the reading of replies."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from sendonce.adapters.transports import smtp
from sendonce.adapters.transports.smtp import SmtpSettings
from sendonce.adapters.transports.smtp_replies import GarbledReply, Reply, ReplyReader, tidy
from sendonce.domain.engine.outcomes import Accepted, Deferred, Outcome
from sendonce.domain.engine.parcels import Parcel
from sendonce.errors import BadSetting
from tests.adapters.smtp_server import (
    Answer,
    Do,
    ListFeed,
    Run,
    SmtpServer,
    both_loops,
    carry,
    letter,
    outcomes_of,
    transport_to,
)


@dataclass
class Certificates:
    server: ssl.SSLContext
    stranger: ssl.SSLContext
    ca_file: Path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    authority, other = trustme.CA(), trustme.CA()
    contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(2)]
    for context, issuer in zip(contexts, (authority, other), strict=True):
        issuer.issue_cert("127.0.0.1").configure_cert(context)
    ca_file = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(ca_file)
    return Certificates(contexts[0], contexts[1], ca_file)


def secured(certificates: Certificates, **options: Any) -> dict[str, Any]:
    return {"ca_file": certificates.ca_file, "username": "user", "password": "s3cret-pass"} | options


# -- connecting -----------------------------------------------------------------------------------


@both_loops
def test_nobody_there_defers_and_rests(run: Run) -> None:
    """A refused connection is no letter's fault; every parcel is settled."""
    feed = ListFeed(letter(n) for n in range(3))

    async def main() -> None:
        async with SmtpServer() as server:
            transport = transport_to(server)
        await transport.carry(feed, 2)

    run(main())
    assert len(feed.outcomes) == 3
    for outcome in feed.outcomes.values():
        assert isinstance(outcome, Deferred)
        assert outcome.throttle
        assert (outcome.code, outcome.retry_after) == ("connect", 15.0)
        assert "cannot reach 127.0.0.1:" in outcome.reason
        assert outcome.outage


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"GREETING": [b"421 4.3.2 too busy"]}, "421"),
        ({"GREETING": [b"554 5.7.1 go away"]}, "554"),
        ({"GREETING": [Do.CLOSE]}, "lost"),
        ({"GREETING": [Do.SILENCE]}, "lost"),
        ({"EHLO": [b"502 5.5.1 HELO only"]}, "502"),
        ({"EHLO": [Do.RESET]}, "lost"),
    ],
)
def test_a_session_that_does_not_begin(answers: dict[str, Sequence[Answer]], code: str) -> None:
    """Bad greetings defer the letter and rest the transport."""
    outcomes, _ = outcomes_of(answers, command_timeout=0.2)
    assert isinstance(outcomes[0], Deferred)
    assert outcomes[0].code == code
    assert outcomes[0].throttle


# -- the wrong port -------------------------------------------------------------------------------


@both_loops
@pytest.mark.parametrize("security", ["starttls", "plain"])
def test_a_port_that_expects_tls_is_told_apart_from_a_slow_one(
    run: Run, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    """Such a server says nothing, so it is asked: no minute of silence, and the reason names the cure."""
    monkeypatch.setattr(smtp, "GREETING_DUE", 0.05)
    feed = ListFeed([letter(0)])

    async def main() -> None:
        async with SmtpServer(tls=certificates.server, implicit_tls=True) as server:
            async with asyncio.timeout(5):
                await carry(server, feed, security=security)
            assert server.commands == []

    run(main())
    assert_wrong_port(feed.outcomes["job-0"], "expects TLS from the start")


class Observed(ListFeed):
    """Looks, when a letter leaves, for how long the kernel would go on delivering it without its process."""

    def __init__(self, server: SmtpServer) -> None:
        super().__init__([letter(0)])
        self._server = server
        self.patience: list[int] = []

    def wire(self, parcel: Parcel) -> bool:
        there = ("127.0.0.1", self._server.port)
        for file in Path("/proc/self/fd").iterdir():
            if file.is_socket():
                with suppress(OSError), socket.socket(fileno=os.dup(int(file.name))) as one:
                    if one.getpeername() == there:
                        self.patience.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
        return super().wire(parcel)


@both_loops
def test_a_dead_workers_letter_leaves_the_kernel_within_half_a_minute(run: Run) -> None:
    """The quiet time of a doubt counts on it; Linux by itself would try for a quarter of an hour."""

    async def main() -> list[int]:
        async with SmtpServer() as server:
            feed = Observed(server)
            await carry(server, feed)
            return feed.patience

    assert run(main()) == [30_000]


@both_loops
def test_tls_to_a_port_that_begins_in_plain_says_so(run: Run, certificates: Certificates) -> None:
    """OpenSSL calls it "wrong version number"; the reason says which ports and settings there are."""
    feed = ListFeed([letter(0)])

    async def main() -> None:
        async with SmtpServer() as server:
            await carry(server, feed, security="tls", ca_file=certificates.ca_file)

    run(main())
    assert_wrong_port(feed.outcomes["job-0"], "does not begin with TLS")


@pytest.mark.parametrize(
    "greeting", [b"HTTP/1.1 404 Not Found", b"* OK IMAP4rev1 ready", b"SSH-2.0-x", b"+OK"]
)
def test_a_port_with_another_protocol_says_so(greeting: bytes) -> None:
    """What it said is quoted, and the sender is held: no letter is to blame."""
    outcomes, _ = outcomes_of({"GREETING": [greeting]})
    assert_wrong_port(outcomes[0], "does not speak SMTP")
    assert greeting.decode() in outcomes[0].reason  # type: ignore[union-attr]


def test_a_web_server_that_waits_for_a_question_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be silent for as long as we are."""
    monkeypatch.setattr(smtp, "GREETING_DUE", 0.05)
    feed = ListFeed([letter(0)])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(100):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main() -> None:
        web = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with web:
            port = web.sockets[0].getsockname()[1]
            await smtp.SmtpTransport(SmtpSettings("127.0.0.1", port, security="plain")).carry(feed, 1)

    asyncio.run(main())
    assert_wrong_port(feed.outcomes["job-0"], "expects HTTP from the start")


def test_a_slow_greeting_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail server that takes its time is neither: its letter is sent."""
    monkeypatch.setattr(smtp, "GREETING_DUE", 0.02)
    monkeypatch.setattr(smtp, "PROBE_WITHIN", 0.02)
    feed = ListFeed([letter(0)])

    async def main() -> None:
        async with SmtpServer({"GREETING": [Do.SILENCE]}) as server:
            work = asyncio.create_task(carry(server, feed))
            while len(server.sessions) < 2 or not server.sessions[1].closed.done():  # the question
                await asyncio.sleep(0.005)
            server.sessions[0].greet()
            await work
            assert len(server.letters) == 1

    asyncio.run(main())
    assert isinstance(feed.outcomes["job-0"], Accepted)


def assert_wrong_port(outcome: Outcome, words: str) -> None:
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.throttle, outcome.hold) == ("wrong_port", True, True)
    assert words in outcome.reason
    assert "SMTP_PORT" in outcome.reason


# -- TLS ------------------------------------------------------------------------------------------


@both_loops
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_letters_go_through_tls(run: Run, certificates: Certificates, security: str) -> None:
    """Both kinds of TLS work, pipelining included, and the credentials are told only inside."""
    feed = ListFeed(letter(n) for n in range(5))

    async def main() -> None:
        implicit = security == "tls"
        inside = ("PIPELINING", "AUTH PLAIN")
        async with SmtpServer(
            extensions=inside if implicit else ("STARTTLS",),
            after_tls=inside,
            tls=certificates.server,
            implicit_tls=implicit,
        ) as server:
            await carry(server, feed, security=security, **secured(certificates))
            assert len(server.letters) == 5
            assert any(b".\r\nMAIL" in chunk for chunk in server.chunks)
            verbs = [command.split()[0] for command in server.commands]
            assert verbs[: verbs.index("AUTH")] == (["EHLO"] if implicit else ["EHLO", "STARTTLS", "EHLO"])

    run(main())
    assert {type(outcome) for outcome in feed.outcomes.values()} == {Accepted}


def test_starttls_is_required_when_asked_for(certificates: Certificates) -> None:
    """A server (or somebody in between) without STARTTLS learns neither password nor letter."""
    feed = ListFeed([letter(0)])

    async def main() -> None:
        async with SmtpServer(extensions=("PIPELINING", "AUTH PLAIN LOGIN")) as server:
            await carry(server, feed, security="starttls", **secured(certificates))
            assert [command.split()[0] for command in server.commands] == ["EHLO"]

    asyncio.run(main())
    outcome = feed.outcomes["job-0"]
    assert isinstance(outcome, Deferred)
    assert outcome.throttle
    assert "does not offer STARTTLS" in outcome.reason


@both_loops
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_of_a_stranger_ends_it(run: Run, certificates: Certificates, security: str) -> None:
    """An unknown authority is refused before a credential or a letter is told."""
    feed = ListFeed([letter(0)])

    async def main() -> None:
        implicit = security == "tls"
        async with SmtpServer(
            extensions=("STARTTLS", "AUTH PLAIN"), tls=certificates.stranger, implicit_tls=implicit
        ) as server:
            await carry(server, feed, security=security, **secured(certificates))
            verbs = [command.split()[0] for command in server.commands]
            assert verbs == ([] if implicit else ["EHLO", "STARTTLS"])

    run(main())
    outcome = feed.outcomes["job-0"]
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.throttle) == ("tls", True)
    assert "certificate" in outcome.reason.lower()


def test_words_slipped_in_before_tls_are_not_taken_for_the_servers(certificates: Certificates) -> None:
    """A reply injected behind the 220 in the clear ends the session (RFC 3207 §6)."""
    feed = ListFeed([letter(0)])

    async def main() -> None:
        answers = {"STARTTLS": [b"220 go\r\n250-evil\r\n250 AUTH PLAIN"]}
        async with SmtpServer(answers, extensions=("STARTTLS",), tls=certificates.server) as server:
            await carry(server, feed, security="starttls", **secured(certificates))
            assert not any(command.startswith("AUTH") for command in server.commands)

    asyncio.run(main())
    assert isinstance(feed.outcomes["job-0"], Deferred)


# -- logging in -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "secret", "expected"),
    [
        ("AUTH LOGIN PLAIN", {"password": "pass"}, ["AUTH PLAIN \0user\0pass"]),
        ("AUTH LOGIN", {"password": "pass"}, ["AUTH LOGIN", "user", "pass"]),
        ("AUTH PLAIN XOAUTH2", {"oauth_token": "tok"}, ["AUTH XOAUTH2 user=user\1auth=Bearer tok\1\1"]),
        (
            "AUTH XOAUTH2",
            {"oauth_token": "t" * 600},
            ["AUTH XOAUTH2", f"user=user\1auth=Bearer {'t' * 600}\1\1"],
        ),
    ],
    ids=["plain", "login", "xoauth2", "long token"],
)
def test_the_ways_to_log_in(offered: str, secret: dict[str, str], expected: list[str]) -> None:
    """PLAIN before LOGIN, XOAUTH2 for a token, and a long first response waits for its prompt."""
    outcomes, server = outcomes_of({}, extensions=("PIPELINING", offered), username="user", **secret)
    assert isinstance(outcomes[0], Accepted)
    told = server.commands[1 : 1 + len(expected)]
    assert [_decoded(line) for line in told] == expected


def _decoded(line: str) -> str:
    head, _, last = line.rpartition(" ")
    if last in {"LOGIN", "XOAUTH2"}:
        return line
    return f"{head} {base64.b64decode(last).decode()}".lstrip(" ")


@pytest.mark.parametrize(
    ("answers", "offered", "secret", "code", "rest"),
    [
        ({"AUTH": [b"535 5.7.8 bad AHVzZXIAczNjcmV0"]}, "AUTH PLAIN", {"password": "s3cret"}, "535", 600.0),
        ({"AUTH": [b"454 4.7.0 later"]}, "AUTH PLAIN", {"password": "s3cret"}, "454", 60.0),
        ({"LOGIN": [b"535 5.7.8 no"]}, "AUTH LOGIN", {"password": "s3cret"}, "535", 600.0),
        (
            {"AUTH": [b"334 eyJzdGF0dXMiOiI0MDAifQ=="]},
            "AUTH XOAUTH2",
            {"oauth_token": "s3cret"},
            "500",
            600.0,
        ),
        ({}, "AUTH CRAM-MD5", {"password": "s3cret"}, "auth", 600.0),
        ({}, "8BITMIME", {"password": "s3cret"}, "auth", 600.0),
    ],
    ids=["plain", "temporary", "login", "xoauth2", "other mechanism", "no auth"],
)
def test_a_failed_login_blames_no_letter_and_tells_no_secret(
    answers: dict[str, Sequence[Answer]], offered: str, secret: dict[str, str], code: str, rest: float
) -> None:
    """The transport rests; the reason holds no credential even if the server quotes it."""
    outcomes, server = outcomes_of(answers, extensions=("PIPELINING", offered), username="user", **secret)
    outcome = outcomes[0]
    assert isinstance(outcome, Deferred)
    assert (outcome.code, outcome.retry_after, outcome.throttle) == (code, rest, True)
    assert "s3cret" not in outcome.reason
    assert "AHVzZXIAczNjcmV0" not in outcome.reason
    assert not any(command.startswith("MAIL") for command in server.commands)


def test_settings_that_would_tell_a_password_are_refused() -> None:
    """No TLS and a password is possible only on loopback; secrets are not in the repr."""
    with pytest.raises(BadSetting, match="in the clear"):
        SmtpSettings("mail.example.org", security="plain", username="user", password="pass")
    with pytest.raises(BadSetting, match="SMTP_PASSWORD"):
        SmtpSettings("mail.example.org", username="user")
    with pytest.raises(BadSetting, match="printable"):
        SmtpSettings("mail.example.org", ehlo_name="me\r\nMAIL FROM:<x>")
    assert "hunter2" not in repr(
        SmtpSettings("localhost", security="plain", username="u", password="hunter2")
    )


# -- replies --------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(200, 599), st.lists(st.binary(max_size=20), min_size=1, max_size=3)), max_size=5
    ),
    st.data(),
)
def test_replies_are_the_same_however_they_are_cut(
    replies: list[tuple[int, list[bytes]]], data: st.DataObject
) -> None:
    """Packets have no meaning in TCP."""
    clean = [(code, [line.translate(None, b"\r\n") for line in lines]) for code, lines in replies]
    wire = b"".join(
        b"%d%s%s\r\n" % (code, b" " if i == len(lines) - 1 else b"-", line)
        for code, lines in clean
        for i, line in enumerate(lines)
    )
    reader, found = ReplyReader(), []
    while wire:
        cut = data.draw(st.integers(1, len(wire)))
        reader.feed(wire[:cut])
        wire = wire[cut:]
        while (reply := reader.next()) is not None:
            found.append(reply)
    assert found == [Reply(code, b"\n".join(lines)) for code, lines in clean]
    assert reader.drained


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_hostile_bytes_make_a_reply_or_a_clear_refusal(data: bytes) -> None:
    """Nothing but GarbledReply comes out of the reader, and what is shown is printable."""
    reader = ReplyReader()
    reader.feed(data)
    with suppress(GarbledReply):
        while (reply := reader.next()) is not None:
            assert 200 <= reply.code < 600
    assert tidy(data).isascii()
    assert tidy(data).isprintable()
