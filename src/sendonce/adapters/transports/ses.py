"""Letters leave through Amazon SES: one SendEmail (API v2) a letter, and nothing is ever retried here.

SES has no idempotency token, and a default AWS client may submit one letter three times. So this is a
client of our own: it writes each request once, signed with the time of the letter's claim, and says
what it knows afterwards.

    take ─► credentials, connection, request ─► wire ─► the request's bytes ─► answer ─► settle
            └ trouble here: Deferred            └ trouble from here on: InDoubt
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path

from pybase64 import b64encode

from sendonce.adapters.aws.credentials import CredentialSource, FreshCredentials
from sendonce.adapters.aws.http1 import Connection, Endpoint, NotConnected, Response, request_bytes
from sendonce.adapters.aws.sigv4 import sign
from sendonce.adapters.transports.ses_answers import error_of, is_credential_fault, json_object, outcome_of
from sendonce.adapters.web.exchanges import NoAnswer
from sendonce.domain.engine.failpoints import failpoint
from sendonce.domain.engine.outcomes import Deferred, InDoubt, Outcome
from sendonce.domain.engine.parcels import Parcel, Quota
from sendonce.errors import BadInput, Unavailable
from sendonce.ports.engine import Feed

_SEND_PATH = "/v2/email/outbound-emails"
_ACCOUNT_PATH = "/v2/email/account"
_SIMULATOR = "success@simulator.amazonses.com"
_CONNECT_REST = 5.0
_CANCELLED = Deferred("cancelled", "the worker was stopped before the letter left", 0.0, throttle=True)

# Names and values of SES tags.
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-[0-9]+")


@dataclass(frozen=True, slots=True)
class SesSettings:
    """``endpoint`` is where SES lives when that is not ``email.<region>.amazonaws.com``."""

    region: str
    credentials: CredentialSource
    configuration_set: str | None = None
    endpoint: str | None = None
    connect_timeout: float = 3.0
    read_timeout: float = 10.0
    ca_file: Path | None = None


class _Hindered(Exception):
    """The letter cannot leave now; nothing of it has."""

    def __init__(self, outcome: Deferred) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class SesTransport:
    name = "ses"

    def __init__(
        self, settings: SesSettings, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if not _REGION.fullmatch(settings.region):
            raise BadInput(f"AWS_REGION has value {settings.region!r}. It must look like eu-central-1.")
        url = settings.endpoint or f"https://email.{settings.region}.amazonaws.com"
        self._settings = settings
        self._now = now
        self._endpoint = Endpoint.parse(url, "AWS_ENDPOINT_URL_SESV2")
        self._tls = _tls_context(settings.ca_file) if self._endpoint.secure else None
        self._credentials = FreshCredentials(settings.credentials)
        self._headers = {"Host": self._endpoint.host_header, "Content-Type": "application/json"}

    async def carry(self, feed: Feed, connections: int) -> None:
        lanes = [asyncio.create_task(self._drive(feed)) for _ in range(connections)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def quota(self) -> Quota:
        account = json_object((await self._account()).body) or {}
        limits = account.get("SendQuota")
        if not isinstance(limits, dict):
            raise Unavailable("SES answered GetAccount without a SendQuota. Is the endpoint really SES?")
        per_day, sent = _number(limits, "Max24HourSend"), _number(limits, "SentLast24Hours")
        left = None if per_day is None or per_day < 0 else max(0, int(per_day - (sent or 0.0)))
        enabled = account.get("SendingEnabled") is not False
        return Quota(_number(limits, "MaxSendRate"), left, enabled, None if sent is None else int(sent))

    async def server_time(self) -> datetime:
        """AWS's own clock, from an answer that was asked for just now. Raises Unavailable."""
        return _date_of(await self._account())

    async def send_canary(self, canary_id: str, sender: str) -> Outcome:
        """A letter to the mailbox simulator, whose Send event shows that the event route works."""
        if not _TAG.fullmatch(canary_id):
            raise BadInput(f"The canary id {canary_id!r} must be 1 to 256 letters, digits, _ or -.")
        content = (
            f"From: {sender}\r\nTo: {_SIMULATOR}\r\nSubject: canary {canary_id}\r\n"
            "MIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nDo the events come back?\r\n"
        )
        if len(content.splitlines()) != 7:
            raise BadInput(f"The sender {sender!r} has a line end in it.")
        body = self._send_email_body(sender, _SIMULATOR, content.encode(), (("canary", canary_id),))
        try:
            response = await self._exchange_once("POST", _SEND_PATH, body)
        except _Hindered as exc:
            return exc.outcome
        except NoAnswer as exc:
            return InDoubt(str(exc))
        return outcome_of(response)

    async def close(self) -> None:
        """Nothing to do: connections are closed by those who opened them."""

    async def _drive(self, feed: Feed) -> None:
        """One lane: a connection of its own, one letter after the other."""
        kept = _KeptConnection(self._endpoint, self._tls, self._settings.connect_timeout)
        try:
            while (parcel := await feed.take()) is not None:
                await self._carry_one(feed, parcel, kept)
        finally:
            await kept.close()

    async def _carry_one(self, feed: Feed, parcel: Parcel, kept: _KeptConnection) -> None:
        try:
            request = await self._prepare(parcel)
            connection = await kept.connection()
            if feed.is_stale(parcel):
                await feed.reaffirm(parcel)
                connection = await kept.connection()
        except _Hindered as exc:
            feed.settle(parcel, exc.outcome)
            return
        except asyncio.CancelledError:
            feed.settle(parcel, _CANCELLED)
            raise
        if not feed.wire(parcel):
            return
        answer = connection.send(request, self._settings.read_timeout)
        failpoint("body-after")
        try:
            with suppress(NoAnswer):
                await answer
        finally:
            feed.settle(parcel, self._judge(answer))

    def _judge(self, answer: asyncio.Future[Response]) -> Outcome:
        """What is known now. A cancellation may come in the same moment as the answer, which still counts."""
        if answer.cancelled() or not answer.done():
            return InDoubt("the worker was stopped before SES answered")
        trouble = answer.exception()
        if trouble is not None:
            return InDoubt(str(trouble))
        response = answer.result()
        if response.status != 200 and is_credential_fault(response):
            self._credentials.forget()
        return outcome_of(response)

    async def _prepare(self, parcel: Parcel) -> bytes:
        tags = (("job", parcel.job_id), ("attempt", str(parcel.attempt)))
        body = self._send_email_body(parcel.sender, parcel.recipient, parcel.content, tags)
        return await self._signed("POST", _SEND_PATH, body, parcel.claimed_at)

    async def _signed(self, method: str, path: str, body: bytes, when: datetime) -> bytes:
        try:
            credentials = self._credentials.known() or await self._credentials.get()
        except (Unavailable, BadInput) as exc:
            raise _Hindered(Deferred("no_credentials", str(exc), throttle=True, hold=True)) from exc
        signature = sign(
            method,
            path,
            self._headers,
            body,
            credentials=credentials,
            region=self._settings.region,
            service="ses",
            when=when,
        )
        return request_bytes(method, path, self._headers | signature, body)

    def _send_email_body(
        self, sender: str, recipient: str, content: bytes, tags: tuple[tuple[str, str], ...]
    ) -> bytes:
        """JSON by hand: base64 needs no escaping, and a letter is large."""
        named = ",".join([f'{{"Name":"{name}","Value":{quoted(value)}}}' for name, value in tags])
        head = (
            f'{{{_fixed_fields(sender, self._settings.configuration_set)},"EmailTags":[{named}],'
            f'"Destination":{{"ToAddresses":[{quoted(recipient)}]}},"Content":{{"Raw":{{"Data":"'
        )
        return b"".join((head.encode("ascii"), b64encode(content), b'"}}}'))

    async def _account(self) -> Response:
        try:
            response = await self._exchange_once("GET", _ACCOUNT_PATH, b"")
        except (_Hindered, NoAnswer) as exc:
            raise Unavailable(f"SES did not answer GetAccount: {exc}") from exc
        if response.status != 200:
            code, message = error_of(response)
            raise Unavailable(f"SES answered GetAccount with {response.status} {code} {message}".rstrip())
        return response

    async def _exchange_once(self, method: str, path: str, body: bytes) -> Response:
        """A request outside the ledger, on a connection of its own, signed with the present time."""
        kept = _KeptConnection(self._endpoint, self._tls, self._settings.connect_timeout)
        try:
            request = await self._signed(method, path, body, self._now())
            connection = await kept.connection()
            return await connection.send(request, self._settings.read_timeout)
        finally:
            await kept.close()


class _KeptConnection:
    """At most one open connection."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, connect_timeout: float) -> None:
        self._endpoint = endpoint
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._open: Connection | None = None

    async def connection(self) -> Connection:
        """The open connection, or a new one where the server hung up or is about to."""
        if self._open is not None:
            if self._open.usable():
                return self._open
            await self.close()
        try:
            self._open = await Connection.connect(self._endpoint, self._tls, self._connect_timeout)
        except NotConnected as exc:
            trouble = Deferred("connect_failed", f"no connection to SES: {exc}", _CONNECT_REST, throttle=True)
            raise _Hindered(trouble) from exc
        return self._open

    async def close(self) -> None:
        closing, self._open = self._open, None
        if closing is not None:
            await closing.close()


@lru_cache(maxsize=64)
def _fixed_fields(sender: str, configuration_set: str | None) -> str:
    fields = {"FromEmailAddress": sender}
    if configuration_set:
        fields["ConfigurationSetName"] = configuration_set
    return json.dumps(fields)[1:-1]


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise BadInput(
            f"The CA file {str(ca_file)!r} cannot be read: {exc}. It must hold PEM certificates."
        ) from exc


def _date_of(response: Response) -> datetime:
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
    except (ValueError, OverflowError) as exc:
        raise Unavailable("SES answered without a Date header that can be read.") from exc
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)


def _number(fields: dict[str, object], name: str) -> float | None:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
