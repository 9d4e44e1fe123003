"""The SMTP transport: letters leave through one submission server, over a few kept connections.

Each lane is one connection's worth of work. It opens a connection when there are letters that no open
connection takes, and takes letters only when it is ready: none grows old while a server delays its greeting.
``smtp_protocol`` moves the letters, ``smtp_limits`` knows how many connections the server grants. Here is
what surrounds them: settings, the way into a session (TCP, TLS, EHLO, AUTH) and the lanes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sendonce.adapters.transports.smtp_auth import Credentials, authenticate
from sendonce.adapters.transports.smtp_limits import Habits, Slots
from sendonce.adapters.transports.smtp_protocol import CANCELLED, GARBLED, LEAVE_WITHIN, Limits, SmtpSession
from sendonce.adapters.transports.smtp_replies import (
    REST_AFTER_TLS_TROUBLE,
    REST_AFTER_UNREACHABLE,
    Reply,
    SessionFailed,
    denial,
    hold,
    outage,
    read_features,
    tidy,
    untouched,
)
from sendonce.adapters.transports.smtp_wrong_port import protocol_at
from sendonce.domain.engine.hosts import is_loopback
from sendonce.domain.engine.outcomes import Deferred
from sendonce.domain.engine.parcels import Parcel, Quota
from sendonce.errors import BadSetting
from sendonce.ports.engine import Feed

# Data unacknowledged for this long breaks the connection, so a dead worker's letter cannot trickle out
# of the kernel for the quarter of an hour that Linux allows by default.
TCP_USER_TIMEOUT_MS = 30_000


NEWS_STAY_NEW = 5.0

# A server that has not greeted for so long may be waiting for TLS or for another protocol: ask it. Not on
# port 25: nobody expects TLS there, and some servers block a client that speaks before the greeting.
GREETING_DUE = 4.0
PROBE_WITHIN = 3.0
MX_PORT = 25

_PORTS = (
    "Most mail servers take STARTTLS on port 587 and TLS on port 465: "
    "check SMTP_HOST, SMTP_PORT and SMTP_SECURITY"
)
# OpenSSL's words for an answer that is not TLS.
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """Where and how to submit.

    ``security="starttls"`` is a demand: without it the session ends before anything is told.
    ``final_dot_timeout`` is the ten minutes of RFC 5321 §4.5.3.2.6: servers scan a letter before they
    answer for it, and to give up early makes a letter that was taken a doubt that a person must settle.
    ``patience`` is how long a letter may wait behind another one before its claim is too old to be sent on.
    """

    host: str
    port: int = 587
    security: Literal["starttls", "tls", "plain"] = "starttls"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth_token: str | None = field(default=None, repr=False)
    ehlo_name: str | None = None
    connect_timeout: float = 30.0
    command_timeout: float = 60.0
    final_dot_timeout: float = 600.0
    idle_timeout: float = 30.0
    patience: float = 0.25
    messages_per_connection: int = 100
    ca_file: Path | None = None
    verify_certificate: bool = True

    def __post_init__(self) -> None:
        secrets = (self.password, self.oauth_token)
        if self.username is None and any(secret is not None for secret in secrets):
            raise BadSetting("SMTP_PASSWORD is set and SMTP_USERNAME is not: set both, or neither")
        if self.username is not None and all(secret is None for secret in secrets):
            raise BadSetting("SMTP_USERNAME is set and SMTP_PASSWORD is not: set both, or neither")
        if self.username is not None and self.security == "plain" and not is_loopback(self.host):
            raise BadSetting(
                f"SMTP_HOST is {self.host!r} without TLS: a password would travel in the clear. "
                "Use STARTTLS (port 587) or TLS (port 465)"
            )
        for value in (self.username, *secrets, self.ehlo_name):
            if value is not None and (not value or not value.isprintable()):
                raise BadSetting("SMTP user name, password and EHLO name must be non-empty and printable")
        if self.messages_per_connection < 1:
            raise BadSetting(
                f"messages per connection is {self.messages_per_connection}: it must be 1 or more"
            )

    @property
    def credentials(self) -> Credentials | None:
        return Credentials(self.username, self.password, self.oauth_token) if self.username else None

    @property
    def limits(self) -> Limits:
        return Limits(
            command=self.command_timeout,
            final_dot=self.final_dot_timeout,
            idle=self.idle_timeout,
            patience=self.patience,
        )


class SmtpTransport:
    name = "smtp"

    def __init__(self, settings: SmtpSettings) -> None:
        self._habits = Habits(settings.messages_per_connection)
        self._door = _Door(settings, self._habits)

    async def carry(self, feed: Feed, connections: int) -> None:
        slots = Slots(connections, self._habits)
        lanes = [_Lane(self._door, feed, slots) for _ in range(connections)]
        work = [lane.start() for lane in lanes]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            # The work is over: who waits for a connection has no use for it any more.
            for lane in lanes:
                lane.dismiss()
            await asyncio.gather(*work)
        finally:
            slots.stop()
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def quota(self) -> Quota | None:
        return None

    async def close(self) -> None:
        """Nothing to do: carry() leaves no connection open."""


class _Lane:
    """One connection's worth of work."""

    def __init__(self, door: _Door, feed: Feed, slots: Slots) -> None:
        self._door = door
        self._feed = feed
        self._slots = slots
        self._task: asyncio.Task[None]
        self._connected = False
        self._waiting = False  # for a parcel, with a session that may end meanwhile
        self._dismissed = False

    def start(self) -> asyncio.Task[None]:
        self._task = asyncio.create_task(self._run())
        return self._task

    def dismiss(self) -> None:
        """End a lane that has no session, and so no letters."""
        if not self._connected:
            self._dismissed = True
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while await self._enter():
                try:
                    session = await self._slots.scouted(self._open)
                    if session is not None:
                        await self._serve(session)
                finally:
                    self._slots.leave()
        except asyncio.CancelledError:
            if not self._dismissed:
                raise

    async def _enter(self) -> bool:
        """Wait for room on the server and for letters; False when the work is over."""
        await self._slots.enter()
        wanted = False
        try:
            wanted = await self._feed.wanted()
        finally:
            if not wanted:
                self._slots.leave()
        return wanted

    async def _open(self) -> SmtpSession | None:
        """A session, or None when the server gave none: then a letter tells so, unless others get through."""
        try:
            session = await self._door.open(self._feed)
        except SessionFailed as exc:
            if self._slots.others_open:
                await asyncio.sleep(self._slots.refused())
            else:
                await self._tell(exc.outcome)
            return None
        self._connected = True
        self._slots.opened(asyncio.get_running_loop().time())
        return session

    async def _tell(self, failure: Deferred) -> None:
        """Rest the transport: the engine learns of trouble from the outcome of a letter. By the time there is
        one, the trouble may be over."""
        clock = asyncio.get_running_loop().time
        began = clock()
        parcel = await self._feed.take()
        if parcel is not None:
            self._feed.settle(parcel, failure if clock() - began < NEWS_STAY_NEW else untouched(failure))

    async def _serve(self, session: SmtpSession) -> None:
        """Carry letters until the session ends or is worn out."""
        session.when_over = self._stop_waiting
        try:
            while session.usable and (parcel := await self._next()) is not None:
                await session.carry(parcel)
        finally:
            self._slots.closed()
            await _part(session)
            self._connected = False
        if session.unwelcome:
            await asyncio.sleep(self._slots.refused())
        if session.untold is not None:
            await self._tell(session.untold)

    async def _next(self) -> Parcel | None:
        """The next parcel; None when there is none any more, or when the session ended before it came."""
        self._waiting = True
        try:
            return await self._feed.take()
        except asyncio.CancelledError:
            if self._waiting or self._task.uncancel() > 0:
                raise
            return None
        finally:
            self._waiting = False

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._task.cancel()


async def _part(session: SmtpSession) -> None:
    """QUIT, and see the connection closed: a cancelled lane waits for it no less."""
    session.leave()
    await asyncio.wait({session.closed}, timeout=2 * LEAVE_WITHIN)


class _Door:
    """The way into a session with the server."""

    def __init__(self, settings: SmtpSettings, habits: Habits) -> None:
        self.settings = settings
        self._context = None if settings.security == "plain" else _tls_context(settings)
        self._habits = habits
        self._known = False  # whether a session was ever opened: then it is the right port

    async def open(self, feed: Feed) -> SmtpSession:
        """A session that is ready for letters. Raises SessionFailed."""
        session = await self._connect(feed)
        try:
            await self._shake_hands(session)
        except BaseException as exc:
            session.drop(CANCELLED, "")
            if isinstance(exc, OSError):
                raise SessionFailed(self._unreachable(exc)) from exc
            raise
        return session

    async def _connect(self, feed: Feed) -> SmtpSession:
        settings = self.settings
        implicit = self._context if settings.security == "tls" else None
        try:
            async with asyncio.timeout(settings.connect_timeout):
                transport, session = await asyncio.get_running_loop().create_connection(
                    lambda: SmtpSession(feed, settings.limits, self._habits),
                    settings.host,
                    settings.port,
                    ssl=implicit,
                    server_hostname=settings.host if implicit else None,
                )
        except (OSError, UnicodeError) as exc:
            raise SessionFailed(self._unreachable(exc)) from exc
        wire = transport.get_extra_info("socket")
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, TCP_USER_TIMEOUT_MS)
        return session

    async def _shake_hands(self, session: SmtpSession) -> None:
        _expect(220, await self._greeting(session), "greeting")
        await self._ehlo(session)
        if self.settings.security == "starttls":
            await self._secure(session)
            await self._ehlo(session)
        credentials = self.settings.credentials
        if credentials is not None:
            await authenticate(session.exchange, session.features.auth, credentials)
        self._known = True

    async def _greeting(self, session: SmtpSession) -> Reply:
        """The server's first words. Where none come, or other ones, who is there is found out and told."""
        settings = self.settings
        if not self._known and settings.port != MX_PORT and not await session.greeted_within(GREETING_DUE):
            protocol = await protocol_at(settings.host, settings.port, PROBE_WITHIN)
            if protocol is not None:
                raise SessionFailed(
                    hold("wrong_port", f"{self._where} expects {protocol} from the start. {_PORTS}")
                )
        try:
            return await session.greeting()
        except SessionFailed as exc:
            if exc.outcome.code != GARBLED:
                raise
            reason = f"{self._where} does not speak SMTP ({exc.outcome.reason}). {_PORTS}"
            raise SessionFailed(hold("wrong_port", reason)) from exc

    async def _ehlo(self, session: SmtpSession) -> None:
        name = self.settings.ehlo_name or session.address_literal
        reply = await session.exchange(f"EHLO {name}".encode())
        _expect(250, reply, "EHLO")
        session.features = read_features(reply)

    async def _secure(self, session: SmtpSession) -> None:
        if not session.features.starttls or self._context is None:
            reason = (
                f"{self._where} does not offer STARTTLS, and it is required: nothing was sent. "
                "Use TLS on port 465 if the server has it; if it used to offer STARTTLS, somebody may be "
                "stripping it on the way"
            )
            raise SessionFailed(hold("starttls", reason))
        _expect(220, await session.exchange(b"STARTTLS"), "STARTTLS")
        await session.start_tls(self._context, self.settings.host, self.settings.connect_timeout)

    @property
    def _where(self) -> str:
        return f"{self.settings.host}:{self.settings.port}"

    def _unreachable(self, exc: Exception) -> Deferred:
        what = tidy((str(exc) or type(exc).__name__).encode("ascii", "replace"))
        if isinstance(exc, ssl.SSLError) and exc.reason in _NO_TLS:
            return hold("wrong_port", f"{self._where} does not begin with TLS. {_PORTS}")
        if isinstance(exc, ssl.SSLCertVerificationError):
            return hold("tls", f"no TLS with {self._where}: {what}", REST_AFTER_TLS_TROUBLE)
        if isinstance(exc, ssl.SSLError):
            return outage("tls", f"no TLS with {self._where}: {what}", REST_AFTER_TLS_TROUBLE)
        if isinstance(exc, TimeoutError):
            what = f"no connection within {self.settings.connect_timeout:g} s"
        return outage("connect", f"cannot reach {self._where}: {what}", REST_AFTER_UNREACHABLE)


def _expect(code: int, reply: Reply, during: str) -> None:
    if reply.code != code:
        raise SessionFailed(denial(reply, during))


def _tls_context(settings: SmtpSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except OSError as exc:
        raise BadSetting(f"the CA file {settings.ca_file} cannot be read: {exc}") from exc
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not settings.verify_certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
