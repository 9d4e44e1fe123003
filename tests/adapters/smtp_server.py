"""A scripted SMTP server on loopback, and a feed: the two ends that an SMTP transport stands between.

The server follows RFC 5321 unless ``answers`` says otherwise: verb → what to do, one after the other
(the last one stays). ``None`` stands for the honest answer.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
import uvloop

from sendonce.adapters.transports.smtp import SmtpSettings, SmtpTransport
from sendonce.domain.engine.outcomes import Deferred, Outcome
from sendonce.domain.engine.parcels import Parcel


class Do(Enum):
    CLOSE = "close the connection"
    RESET = "reset the connection"
    SILENCE = "say nothing"
    TELL_AND_CLOSE = "say 421 and close"
    LATE = "give the honest answer when it is asked for"


Answer = bytes | Do | None

Run = Callable[[Coroutine[Any, Any, None]], None]

both_loops = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])

PIPELINING = ("PIPELINING", "8BITMIME")


class SmtpServer:
    """Use as ``async with SmtpServer(...) as server``; everything that happened stays in it."""

    def __init__(
        self,
        answers: Mapping[str, Sequence[Answer]] | None = None,
        *,
        extensions: Sequence[str] = PIPELINING,
        after_tls: Sequence[str] | None = None,
        tls: ssl.SSLContext | None = None,
        implicit_tls: bool = False,
        dribble: bool = False,
        keeps_transaction: bool = False,
        most_sessions: int | None = None,
        letters_per_session: int | None = None,
        over_limit: Do = Do.TELL_AND_CLOSE,
        recipients: Mapping[str, bytes] | None = None,
    ) -> None:
        self.recipients = recipients or {}  # what RCPT gets for some of them
        self.over_limit = over_limit
        self.keeps_transaction = keeps_transaction  # after a letter that it refused at the dot, as mox does
        self.most_sessions = most_sessions  # any more are greeted with 421, as Postfix does
        self.letters_per_session = letters_per_session  # any more get 421 to MAIL, as from Exim
        self.extensions = extensions
        self.after_tls = extensions if after_tls is None else after_tls
        self.tls = tls
        self.dribble = dribble
        self.port = 0
        self.sessions: list[_Session] = []
        self.letters: list[tuple[str, bytes]] = []
        self.empty_letters = 0
        self.data_ended = asyncio.Event()
        self._answers = {verb: list(answer) for verb, answer in (answers or {}).items()}
        self._implicit_tls = implicit_tls

    async def __aenter__(self) -> SmtpServer:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Session(self), "127.0.0.1", 0, ssl=self.tls if self._implicit_tls else None
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for session in self.sessions:
            session.close()
        await asyncio.gather(*(session.closed for session in self.sessions))
        await self._server.wait_closed()

    @property
    def commands(self) -> list[str]:
        return [command for session in self.sessions for command in session.commands]

    @property
    def chunks(self) -> list[bytes]:
        return [chunk for session in self.sessions for chunk in session.chunks]

    def scripted(self, verb: str) -> Answer:
        answers = self._answers.get(verb)
        if not answers:
            return None
        return answers.pop(0) if len(answers) > 1 else answers[0]


class _Session(asyncio.Protocol):
    def __init__(self, server: SmtpServer) -> None:
        self.commands: list[str] = []
        self.chunks: list[bytes] = []
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server = server
        self._transport: asyncio.Transport
        self._pending = b""
        self._in_data = False
        self._secure = False
        self._sender: str | None = None
        self._recipients: list[str] = []
        self._login_steps = 0
        self._late = b""
        self._mute = False  # a server answers in order: one that owes an answer gives no other
        self._upgrade: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._server.sessions.append(self)
        limit = self._server.most_sessions
        if limit is not None and sum(not session.closed.done() for session in self._server.sessions) > limit:
            self._say(Do.TELL_AND_CLOSE, b"")
        else:
            self._answer("GREETING", b"220 test ESMTP")

    def answer_late(self, words: bytes = b"") -> None:
        """Give the answer that a scripted LATE held back, or say something else."""
        self._mute = False
        self._send((words or self._late) + b"\r\n")
        self._go_on()

    def greet(self) -> None:
        """End the silence of a scripted greeting."""
        self._mute = False
        self._transport.write(b"220 test ESMTP, at last\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def close(self) -> None:
        if not self.closed.done():
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self.chunks.append(data)
        self._pending += data
        self._go_on()

    def _go_on(self) -> None:
        while not self._transport.is_closing() and not self._mute and self._upgrade is None:
            if self._in_data:
                body, dot, rest = (b"\r\n" + self._pending).partition(b"\r\n.\r\n")
                if not dot:
                    return
                self._pending = rest
                self._end_data(body[2:] + b"\r\n" if body else b"")
            else:
                line, end, rest = self._pending.partition(b"\r\n")
                if not end:
                    return
                self._pending = rest
                self._command(line.decode())

    def _end_data(self, body: bytes) -> None:
        self._in_data = False
        content = (b"\n" + body).replace(b"\n..", b"\n.")[1:]
        if not content:
            self._server.empty_letters += 1
        taken = bool(self._recipients)
        self._server.data_ended.set()
        answer = self._server.scripted("DOT")
        if taken and (answer is None or isinstance(answer, Do) or answer.startswith(b"2")):
            self._server.letters.extend((recipient, content) for recipient in self._recipients)
        if not (self._server.keeps_transaction and isinstance(answer, bytes)):
            self._sender, self._recipients = None, []
        self._say(answer, b"250 2.0.0 Ok: queued as ABC" if taken else b"554 5.5.1 No valid recipients")

    def _command(self, line: str) -> None:
        self.commands.append(line)
        if self._login_steps:
            self._login_steps -= 1
            self._answer("LOGIN", b"334 UGFzc3dvcmQ6" if self._login_steps else b"235 2.7.0 Welcome")
            return
        verb = line.split(" ")[0].split(":")[0].upper()
        handler = getattr(self, f"_{verb.lower()}", None)
        if handler is None:
            self._answer(verb, b"500 5.5.2 What?")
        else:
            handler(line)

    def _ehlo(self, line: str) -> None:
        extensions = self._server.after_tls if self._secure else self._server.extensions
        lines = ["test", *extensions]
        text = "\r\n".join(f"250{'-' if i < len(lines) - 1 else ' '}{x}" for i, x in enumerate(lines))
        self._answer("EHLO", text.encode())

    def _starttls(self, line: str) -> None:
        self._answer("STARTTLS", b"220 2.0.0 Go")
        if self._server.tls is not None:
            self._upgrade = asyncio.create_task(self._start_tls(self._server.tls))

    async def _start_tls(self, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        try:
            secure = await loop.start_tls(self._transport, self, context, server_side=True)
        except OSError:
            self._transport.abort()
            self.connection_lost(None)
            return
        self._transport = secure  # type: ignore[assignment]
        self._secure = True
        self._upgrade = None
        self._go_on()

    def _auth(self, line: str) -> None:
        if line.upper() == "AUTH LOGIN":
            self._login_steps = 2
            self._answer("AUTH", b"334 VXNlcm5hbWU6")
        elif len(line.split()) == 2:
            self._login_steps = 1
            self._answer("AUTH", b"334 ")
        else:
            self._answer("AUTH", b"235 2.7.0 Welcome")

    def _mail(self, line: str) -> None:
        limit = self._server.letters_per_session
        if self._sender is not None:
            self._answer("MAIL", b"503 5.5.1 nested MAIL command")
        elif limit is not None and sum(line.startswith("MAIL") for line in self.commands) > limit:
            self._say(self._server.over_limit, b"")
        elif self._answer("MAIL", b"250 2.1.0 Ok"):
            self._sender = line

    def _rcpt(self, line: str) -> None:
        wanted = line.partition("<")[2].partition(">")[0]
        if self._sender is None:
            self._answer("RCPT", b"503 5.5.1 need MAIL")
        elif (words := self._server.recipients.get(wanted)) is not None:
            self._say(words, b"")
        elif self._answer("RCPT", b"250 2.1.5 Ok"):
            self._recipients.append(wanted)

    def _data(self, line: str) -> None:
        honest = b"354 Go ahead" if self._recipients else b"554 5.5.1 No valid recipients"
        self._in_data = self._answer("DATA", honest, good=b"354")

    def _rset(self, line: str) -> None:
        self._sender, self._recipients = None, []
        self._answer("RSET", b"250 2.0.0 Ok")

    def _quit(self, line: str) -> None:
        self._answer("QUIT", b"221 2.0.0 Bye")
        self._transport.close()

    def _answer(self, verb: str, honest: bytes, good: bytes = b"2") -> bool:
        return self._say(self._server.scripted(verb), honest).startswith(good)

    def _say(self, answer: Answer, honest: bytes) -> bytes:
        if answer is Do.SILENCE:
            self._mute = True
            return b""
        if answer is Do.LATE:
            self._mute = True
            self._late = honest
            return honest
        if answer is Do.CLOSE:
            self._transport.close()
            return b""
        if answer is Do.RESET:
            linger = struct.pack("ii", 1, 0)
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._transport.abort()
            return b""
        if answer is Do.TELL_AND_CLOSE:
            self._transport.write(b"421 4.3.2 Shutting down\r\n")
            self._transport.close()
            return b""
        text = answer if isinstance(answer, bytes) else honest
        self._send(text + b"\r\n")
        return text

    def _send(self, data: bytes) -> None:
        if not self._server.dribble:
            self._transport.write(data)
            return
        for byte in data:  # TCP_NODELAY is on: each byte is a packet
            self._transport.write(bytes([byte]))


def letter(number: int, content: bytes | None = None, recipient: str | None = None) -> Parcel:
    text = b"Subject: %d\r\n\r\nHello, %d\r\n" % (number, number)
    return Parcel(
        job_id=f"job-{number}",
        attempt=1,
        sender="news@example.org",
        recipient=recipient or f"reader{number}@example.net",
        content=text if content is None else content,
        claimed_at=datetime(2025, 1, 1, tzinfo=UTC),
        taken=0.0,
    )


class ListFeed:
    """Feeds the parcels in order and keeps the books: a parcel is settled once, or given back."""

    def __init__(
        self, parcels: Iterable[Parcel], *, stale: Iterable[str] = (), old: Iterable[str] = ()
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.given_back: list[str] = []
        self.unharmed: list[Deferred] = []  # outcomes of letters that may leave again at once
        self.asked_to_wire: list[str] = []
        self.wired: list[str] = []
        self.most_on_wire = 0
        self.taken_in_all = 0
        self.outcomes_of_attempts = False  # keep the outcomes by job and attempt
        self.gates: dict[str, asyncio.Event] = {}  # take() waits here before it gives this job
        self.asked_for: dict[str, asyncio.Event] = {}  # set when take() has begun to wait for this job
        self._waiting = list(parcels)
        self._stale = set(stale)  # these may not leave
        self._old = set(old)  # these may, once they are reaffirmed
        self.reaffirming = asyncio.Event()
        self.reaffirmed = asyncio.Event()
        self.reaffirmed.set()
        self._taken: set[str] = set()
        self._on_wire: set[str] = set()

    async def wanted(self) -> bool:
        await self._gate()
        return bool(self._waiting)

    async def take(self) -> Parcel | None:
        await self._gate()
        return self.take_nowait()

    async def _gate(self) -> None:
        if self._waiting and (gate := self.gates.get(self._waiting[0].job_id)):
            if asked := self.asked_for.get(self._waiting[0].job_id):
                asked.set()
            await gate.wait()
            if self._waiting:
                self.gates.pop(self._waiting[0].job_id, None)

    def take_nowait(self) -> Parcel | None:
        if not self._waiting or self._waiting[0].job_id in self.gates:
            return None
        parcel = self._waiting.pop(0)
        self._taken.add(parcel.job_id)
        self.taken_in_all += 1
        return parcel

    def is_stale(self, parcel: Parcel) -> bool:
        return parcel.job_id in self._old

    async def reaffirm(self, parcel: Parcel) -> None:
        """Takes as long as ``reaffirmed`` is not set."""
        self.reaffirming.set()
        await self.reaffirmed.wait()
        self._old.remove(parcel.job_id)

    def wire(self, parcel: Parcel) -> bool:
        self.asked_to_wire.append(parcel.job_id)
        assert parcel.job_id in self._taken
        if parcel.job_id in self._stale | self._old:
            self._taken.remove(parcel.job_id)
            self.given_back.append(parcel.job_id)
            return False
        self.wired.append(parcel.job_id)
        self._on_wire.add(parcel.job_id)
        self.most_on_wire = max(self.most_on_wire, len(self._on_wire))
        return True

    def settle(self, parcel: Parcel, outcome: Outcome) -> None:
        self._taken.remove(parcel.job_id)
        self._on_wire.discard(parcel.job_id)
        name = f"{parcel.job_id}/{parcel.attempt}" if self.outcomes_of_attempts else parcel.job_id
        assert name not in self.outcomes
        if isinstance(outcome, Deferred) and outcome.local and outcome.retry_after == 0:
            self.unharmed.append(outcome)
            self._waiting.insert(0, parcel)  # the engine claims it again at once
        else:
            self.outcomes[name] = outcome

    @property
    def unsettled(self) -> set[str]:
        return self._taken


def transport_to(server: SmtpServer, **options: Any) -> SmtpTransport:
    chosen = {"security": "plain", "patience": 30.0, "command_timeout": 10.0, "final_dot_timeout": 10.0}
    return SmtpTransport(SmtpSettings("127.0.0.1", server.port, **(chosen | options)))


async def carry(server: SmtpServer, feed: ListFeed, connections: int = 1, **options: Any) -> None:
    await transport_to(server, **options).carry(feed, connections)
    assert not feed.unsettled


def outcomes_of(
    answers: dict[str, Sequence[Answer]], letters: int = 1, run: Run = asyncio.run, **options: Any
) -> tuple[list[Outcome], SmtpServer]:
    """Send letters over one connection to a server with these answers."""
    servers: list[SmtpServer] = []
    feed = ListFeed(letter(n) for n in range(letters))
    extensions = options.pop("extensions", ("PIPELINING",))

    async def main() -> None:
        async with SmtpServer(answers, extensions=extensions) as server:
            servers.append(server)
            await carry(server, feed, **options)

    run(main())
    return [feed.outcomes[f"job-{n}"] for n in range(letters)], servers[0]
