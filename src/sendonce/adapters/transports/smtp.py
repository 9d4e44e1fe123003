"""The SMTP transport: letters leave through one submission server, over a few kept connections.

A lane takes a parcel, opens a connection when it has none, and keeps it for up to
``messages_per_connection`` letters. ``smtp_protocol`` moves the letters; here is what surrounds it:
settings, the way into a session (TCP, TLS, EHLO, AUTH) and the lanes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sendonce.adapters.transports.smtp_auth import Credentials, authenticate
from sendonce.adapters.transports.smtp_protocol import CANCELLED, LEAVE_WITHIN, Limits, Pace, SmtpSession
from sendonce.adapters.transports.smtp_replies import (
    REST_AFTER_DENIED,
    REST_AFTER_TLS_TROUBLE,
    REST_AFTER_UNREACHABLE,
    Reply,
    SessionFailed,
    denial,
    read_features,
    tidy,
    trouble,
)
from sendonce.domain.outcomes import Deferred
from sendonce.domain.parcels import Parcel, Quota
from sendonce.errors import BadSetting
from sendonce.ports import Feed

# Data unacknowledged for this long breaks the connection, so a dead worker's letter cannot trickle out
# of the kernel for the quarter of an hour that Linux allows by default.
TCP_USER_TIMEOUT_MS = 30_000

# The connection stands now, and the next parcel finds it open.
_LATE = trouble("late", "the connection took so long to open that the claim may be stale", 0.0)


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """Where and how to submit.

    ``security="starttls"`` is a demand: without it the session ends before anything is told.
    ``final_dot_timeout`` is the ten minutes of RFC 5321 §4.5.3.2.6: servers scan a letter before they
    answer for it, and to give up early makes a letter that was taken a doubt that a person must settle.
    ``patience`` is how long a letter may wait for a connection or behind another one before its claim
    is too old to be sent on.
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
        if self.username is not None and self.security == "plain" and not _is_loopback(self.host):
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
            letters=self.messages_per_connection,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class SmtpTransport:
    name = "smtp"

    def __init__(self, settings: SmtpSettings) -> None:
        self._door = _Door(settings)

    async def carry(self, feed: Feed, connections: int) -> None:
        lanes = [asyncio.create_task(_Lane(self._door, feed).run()) for _ in range(connections)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def quota(self) -> Quota | None:
        return None

    async def close(self) -> None:
        """Nothing to do: carry() leaves no connection open."""


class _Lane:
    """One connection's worth of work."""

    def __init__(self, door: _Door, feed: Feed) -> None:
        self._door = door
        self._feed = feed
        self._session: SmtpSession | None = None

    async def run(self) -> None:
        try:
            while (parcel := await self._feed.take()) is not None:
                await self._deliver(parcel)
                await self._retire_if_worn()
        finally:
            await self._part()

    async def _deliver(self, parcel: Parcel) -> None:
        """Send the parcel and what follows it. A kept connection that proves dead is replaced once."""
        waiting: Parcel | None = parcel
        try:
            while waiting is not None:
                session = await self._connected()
                sending, waiting = waiting, None
                await session.carry(sending)
                waiting, session.unsent = session.unsent, None
        except SessionFailed as exc:
            if waiting is not None:
                self._feed.settle(waiting, exc.outcome)
        except asyncio.CancelledError:
            if waiting is not None:
                self._feed.settle(waiting, CANCELLED)
            raise

    async def _connected(self) -> SmtpSession:
        if self._session is not None and self._session.usable:
            return self._session
        clock = asyncio.get_running_loop().time
        started = clock()
        self._session = None
        self._session = await self._door.open(self._feed)
        if clock() - started > self._door.settings.patience:
            raise SessionFailed(_LATE)
        return self._session

    async def _retire_if_worn(self) -> None:
        if self._session is not None and not self._session.usable:
            await self._part()

    async def _part(self) -> None:
        """QUIT, and see the connection closed: a cancelled lane waits for it no less."""
        session, self._session = self._session, None
        if session is not None:
            session.leave()
            await asyncio.wait({session.closed}, timeout=2 * LEAVE_WITHIN)


class _Door:
    """The way into a session with the server."""

    def __init__(self, settings: SmtpSettings) -> None:
        self.settings = settings
        self._context = None if settings.security == "plain" else _tls_context(settings)
        self._pace = Pace()

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
                    lambda: SmtpSession(feed, settings.limits, self._pace),
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
        _expect(220, await session.greeting(), "greeting")
        await self._ehlo(session)
        if self.settings.security == "starttls":
            await self._secure(session)
            await self._ehlo(session)
        credentials = self.settings.credentials
        if credentials is not None:
            await authenticate(session.exchange, session.features.auth, credentials)

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
            raise SessionFailed(trouble("starttls", reason, REST_AFTER_DENIED))
        _expect(220, await session.exchange(b"STARTTLS"), "STARTTLS")
        await session.start_tls(self._context, self.settings.host, self.settings.connect_timeout)

    @property
    def _where(self) -> str:
        return f"{self.settings.host}:{self.settings.port}"

    def _unreachable(self, exc: Exception) -> Deferred:
        what = tidy((str(exc) or type(exc).__name__).encode("ascii", "replace"))
        if isinstance(exc, ssl.SSLError):
            return trouble("tls", f"no TLS with {self._where}: {what}", REST_AFTER_TLS_TROUBLE)
        if isinstance(exc, TimeoutError):
            what = f"no connection within {self.settings.connect_timeout:g} s"
        return trouble("connect", f"cannot reach {self._where}: {what}", REST_AFTER_UNREACHABLE)


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
