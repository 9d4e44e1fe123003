"""Letters leave through Amazon SES: one SendEmail (API v2) a letter, and nothing is ever retried here.

SES has no idempotency token, and a default AWS client may submit one letter three times. So this is a
client of our own: it writes each request once, signed with the time of the letter's claim, and says
what it knows afterwards. ``ses_lane`` moves the letters, ``ses_requests`` signs them, ``ses_answers`` reads
what SES says.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from sendonce.adapters.aws.credentials import CredentialSource, FreshCredentials
from sendonce.adapters.aws.http1 import Endpoint, Response
from sendonce.adapters.transports.ses_answers import error_of, json_object, outcome_of
from sendonce.adapters.transports.ses_lane import Hindered, SesDoor, SesLane
from sendonce.adapters.transports.ses_requests import SEND_PATH, SesRequests
from sendonce.adapters.web.exchanges import NoAnswer
from sendonce.domain.engine.outcomes import InDoubt, Outcome
from sendonce.domain.engine.parcels import Quota
from sendonce.errors import BadInput, Unavailable
from sendonce.ports.engine import Feed

_ACCOUNT_PATH = "/v2/email/account"
_SIMULATOR = "success@simulator.amazonses.com"

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
        endpoint = Endpoint.parse(url, "AWS_ENDPOINT_URL_SESV2")
        self._requests = SesRequests(endpoint.host_header, settings.region, settings.configuration_set)
        self._door = SesDoor(
            endpoint,
            _tls_context(settings.ca_file) if endpoint.secure else None,
            settings.connect_timeout,
            FreshCredentials(settings.credentials),
            self._requests,
        )

    async def carry(self, feed: Feed, connections: int) -> None:
        timeout = self._settings.read_timeout
        lanes = [asyncio.create_task(SesLane(self._door, feed, timeout).drive()) for _ in range(connections)]
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
        body = self._requests.send_email_body(sender, _SIMULATOR, content.encode(), (("canary", canary_id),))
        try:
            response = await self._exchange_once("POST", SEND_PATH, body)
        except Hindered as exc:
            return exc.outcome
        except NoAnswer as exc:
            return InDoubt(str(exc))
        return outcome_of(response)

    async def close(self) -> None:
        """Nothing to do: connections are closed by those who opened them."""

    async def _account(self) -> Response:
        try:
            response = await self._exchange_once("GET", _ACCOUNT_PATH, b"")
        except (Hindered, NoAnswer) as exc:
            raise Unavailable(f"SES did not answer GetAccount: {exc}") from exc
        if response.status != 200:
            code, message = error_of(response)
            raise Unavailable(f"SES answered GetAccount with {response.status} {code} {message}".rstrip())
        return response

    async def _exchange_once(self, method: str, path: str, body: bytes) -> Response:
        """A request outside the ledger, on a connection of its own, signed with the present time."""
        request = self._requests.signed(method, path, body, await self._door.identify(), self._now())
        connection = await self._door.connect()
        try:
            return await connection.exchange(request, self._settings.read_timeout)
        finally:
            await connection.close()


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
