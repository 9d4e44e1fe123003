"""One connection's worth of letters to SES, one after the other.

    take ─► credentials, connection, request ─► wire ─► the request's bytes ─► answer ─► settle
            └ trouble here: Deferred            └ trouble from here on: InDoubt

A letter that has to wait for nothing leaves in the callback that brought the answer to the one before it: the
coroutine wakes only for credentials, for a connection, for an old claim, and when the feed has nothing ready.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

from sendonce.adapters.aws.credentials import Credentials, FreshCredentials
from sendonce.adapters.aws.http1 import Connection, Endpoint, NotConnected, Response
from sendonce.adapters.transports.ses_answers import is_credential_fault, outcome_of
from sendonce.adapters.transports.ses_requests import SesRequests
from sendonce.adapters.web.exchanges import NoAnswer
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.outcomes import Deferred, InDoubt, Outcome
from sendonce.domain.engine.parcels import Parcel
from sendonce.errors import BadInput, Unavailable
from sendonce.ports.engine import Feed

_CONNECT_REST = 5.0
_CANCELLED = Deferred("cancelled", "the worker was stopped before the letter left", 0.0, throttle=True)
_STOPPED = InDoubt("the worker was stopped before SES answered")


class Hindered(Exception):
    """The letter cannot leave now; nothing of it has."""

    def __init__(self, outcome: Deferred) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class SesDoor:
    """Where SES is, and who we are there."""

    endpoint: Endpoint
    tls: ssl.SSLContext | None
    connect_timeout: float
    credentials: FreshCredentials
    requests: SesRequests

    async def identify(self) -> Credentials:
        """Raises Hindered."""
        try:
            return self.credentials.known() or await self.credentials.get()
        except (Unavailable, BadInput) as exc:
            raise Hindered(Deferred("no_credentials", str(exc), throttle=True, hold=True)) from exc

    async def connect(self) -> Connection:
        """Raises Hindered."""
        try:
            return await Connection.connect(self.endpoint, self.tls, self.connect_timeout)
        except NotConnected as exc:
            why = f"no connection to SES: {exc}"
            trouble = Deferred("connect_failed", why, _CONNECT_REST, throttle=True, outage=True)
            raise Hindered(trouble) from exc


class SesLane:
    def __init__(self, door: SesDoor, feed: Feed, read_timeout: float) -> None:
        self._door = door
        self._feed = feed
        self._read_timeout = read_timeout
        self._connection: Connection | None = None
        self._on_wire: Parcel | None = None
        self._turn: asyncio.Future[Parcel | None]

    async def drive(self) -> None:
        try:
            parcel = await self._feed.take()
            while parcel is not None:
                parcel = await self._carry(parcel) or await self._feed.take()
        finally:
            if self._connection is not None:
                await self._connection.close()

    async def _carry(self, parcel: Parcel) -> Parcel | None:
        """Send it, and behind it whatever is ready; the parcel that could not follow at once, if any."""
        try:
            credentials = await self._door.identify()
            connection = await self._connected()
            if self._feed.is_stale(parcel):
                await self._feed.reaffirm(parcel)
                connection = await self._connected()
        except Hindered as exc:
            self._feed.settle(parcel, exc.outcome)
            return None
        except asyncio.CancelledError:
            self._feed.settle(parcel, _CANCELLED)
            raise
        self._turn = asyncio.get_running_loop().create_future()
        if not self._send(parcel, credentials, connection):
            return None
        try:
            return await self._turn
        except (asyncio.CancelledError, Exception):
            self._put_down()
            raise

    def _put_down(self) -> None:
        """The lane ends. A letter on the wire is in doubt; one that was to follow just now never left."""
        if self._on_wire is not None:
            self._feed.settle(self._take_off_wire(), _STOPPED)
        following = None if self._turn.cancelled() or self._turn.exception() else self._turn.result()
        if following is not None:
            self._feed.settle(following, _CANCELLED)

    async def _connected(self) -> Connection:
        """The open connection, or a new one where the server hung up or is about to."""
        if self._connection is not None:
            if self._connection.usable():
                return self._connection
            closing, self._connection = self._connection, None
            await closing.close()
        self._connection = await self._door.connect()
        return self._connection

    def _send(self, parcel: Parcel, credentials: Credentials, connection: Connection) -> bool:
        request = self._door.requests.of_letter(parcel, credentials)
        if not self._feed.wire(parcel):
            return False
        self._on_wire = parcel
        connection.send(request, self._read_timeout, self._on_answer)
        failpoint("body-after")
        return True

    def _take_off_wire(self) -> Parcel:
        parcel, self._on_wire = self._on_wire, None
        assert parcel is not None
        return parcel

    def _on_answer(self, answer: Response | NoAnswer) -> None:
        if self._on_wire is None:
            return  # the lane was stopped, and the letter is in doubt
        try:
            self._feed.settle(self._take_off_wire(), self._judge(answer))
            if not self._turn.done():  # it is when the lane is being stopped
                self._go_on()
        except Exception as exc:  # noqa: BLE001 (the feed's errors belong to the lane, not to the event loop)
            if not self._turn.done():
                self._turn.set_exception(exc)

    def _go_on(self) -> None:
        """Send the next letter that is ready, or leave it to the coroutine where it has to wait."""
        while (parcel := self._feed.take_nowait()) is not None:
            credentials, connection = self._door.credentials.known(), self._connection
            if credentials is None or connection is None or not connection.usable():
                break
            if self._feed.is_stale(parcel):
                break
            if self._send(parcel, credentials, connection):
                return
        self._turn.set_result(parcel)

    def _judge(self, answer: Response | NoAnswer) -> Outcome:
        if isinstance(answer, NoAnswer):
            return InDoubt(str(answer), outage=True)
        if answer.status != 200 and is_credential_fault(answer):
            self._door.credentials.forget()
        return outcome_of(answer)
