"""Questions to SES (API v2) that change nothing: GET requests, signed, each with a time limit.

SES allows some of these calls once a second, so they go one after the other, each is made once, and
«too many requests» is met with patience. Where SES does not answer one of them, the others are not asked.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from sendonce.adapters.aws.credentials import CredentialSource
from sendonce.adapters.aws.http1 import Connection, Endpoint, NotConnected, Response, request_bytes
from sendonce.adapters.aws.sigv4 import sign
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.adapters.transports.ses_answers import error_of, json_object
from sendonce.adapters.web.exchanges import NoAnswer
from sendonce.errors import Unavailable

_CONNECT_WITHIN = 3.0
_ANSWER_WITHIN = 5.0
_CREDENTIALS_WITHIN = 5.0
_REST = 1.1
_MOST_TRIES = 3
_TOO_MANY = frozenset({"TooManyRequestsException", "ThrottlingException", "Throttling"})


@dataclass(frozen=True, slots=True)
class Answer:
    """``fields`` of a 200, ``code`` and ``message`` of a refusal; ``date`` is Amazon's clock."""

    status: int
    fields: dict[str, Any]
    code: str
    message: str
    date: datetime | None

    def part(self, name: str) -> dict[str, Any]:
        value = self.fields.get(name)
        return value if isinstance(value, dict) else {}

    @property
    def trouble(self) -> str:
        """For the middle of a sentence: Amazon ends its own with a full stop."""
        return f"{self.status} {self.code} {self.message}".rstrip(" .")


class SesReader:
    def __init__(self, region: str, credentials: CredentialSource, endpoint: str | None) -> None:
        url = endpoint or f"https://email.{region}.amazonaws.com"
        self._region = region
        self._credentials = credentials
        self._endpoint = Endpoint.parse(url, "AWS_ENDPOINT_URL_SESV2")
        self._one_at_a_time = asyncio.Lock()
        self._known: dict[str, Answer] = {}
        self._silence: Unavailable | None = None

    async def account(self) -> Answer:
        return await self._get("/v2/email/account")

    async def identity(self, name: str) -> Answer:
        return await self._get(f"/v2/email/identities/{quote(name, safe='')}")

    async def identities(self) -> Answer:
        """The first page of them."""
        return await self._get("/v2/email/identities")

    async def configuration_set(self, name: str) -> Answer:
        return await self._get(f"/v2/email/configuration-sets/{quote(name, safe='')}")

    async def event_destinations(self, name: str) -> Answer:
        return await self._get(f"/v2/email/configuration-sets/{quote(name, safe='')}/event-destinations")

    async def _get(self, path: str) -> Answer:
        """Raises Unavailable where there is no answer, BadInput for credentials that cannot be used."""
        async with self._one_at_a_time:
            if self._silence is not None:
                raise self._silence
            if path not in self._known:
                self._known[path] = await self._ask_patiently(path)
            return self._known[path]

    async def _ask_patiently(self, path: str) -> Answer:
        for _ in range(_MOST_TRIES - 1):
            answer = await self._ask(path)
            if answer.status != 429 and answer.code not in _TOO_MANY:
                return answer
            await asyncio.sleep(_REST)
        return await self._ask(path)

    async def _ask(self, path: str) -> Answer:
        try:
            response = await self._exchange(await self._signed(path))
        except (NotConnected, NoAnswer, Unavailable) as exc:
            self._silence = Unavailable(f"SES does not answer: {exc}.")
            raise self._silence from exc
        fields = json_object(response.body) or {}
        code, message = error_of(response) if response.status != 200 else ("", "")
        return Answer(response.status, fields, code, message, _date(response))

    async def _signed(self, path: str) -> bytes:
        try:
            credentials = await asyncio.wait_for(
                in_own_thread(self._credentials.current), _CREDENTIALS_WITHIN
            )
        except TimeoutError as exc:
            raise Unavailable(
                "AWS credentials were not found in time: no keys are set, and the role or "
                "profile does not answer."
            ) from exc
        headers = {"Host": self._endpoint.host_header}
        signature = sign(
            "GET",
            path,
            headers,
            b"",
            credentials=credentials,
            region=self._region,
            service="ses",
            when=datetime.now(UTC),
        )
        return request_bytes("GET", path, headers | signature, b"")

    async def _exchange(self, request: bytes) -> Response:
        tls = ssl.create_default_context() if self._endpoint.secure else None
        connection = await Connection.connect(self._endpoint, tls, _CONNECT_WITHIN)
        try:
            return await connection.exchange(request, _ANSWER_WITHIN)
        finally:
            await connection.close()


def _date(response: Response) -> datetime | None:
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
    except (ValueError, OverflowError):
        return None
    return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
