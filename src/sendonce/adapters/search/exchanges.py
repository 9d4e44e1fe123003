"""One HTTP exchange with a search provider, bounded in time and size. It tells what was surely not sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpcore

# A page of a hundred results is some 300 KB, and a third more in Base64.
MAX_ANSWER = 16 * 1024 * 1024
# The whole of an exchange; connecting has less.
SECONDS = 30.0
CONNECT_SECONDS = 10.0
# A connection that the provider may be about to close is not used again: a POST lost on it has no known fate.
_IDLE_SECONDS = 2.0


class NotSent(Exception):
    """The request did not leave: nobody can have carried it out."""


class Unanswered(Exception):
    """The request left, and what came back is no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    retry_after: float | None
    body: bytes = field(repr=False)


class Exchanges:
    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._pool: httpcore.AsyncConnectionPool | None = None

    async def ask(self, method: str, url: str, body: bytes | None, authorization: str | None) -> Answer:
        """Raises NotSent or Unanswered, whose messages tell why."""
        import httpcore

        headers: dict[bytes | str, bytes | str] = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "sendonce",
        }
        if authorization is not None:
            headers["Authorization"] = authorization
        if body is not None:
            headers["Content-Type"] = "application/json"
        not_sent = (
            *(httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout),
            *(httpcore.UnsupportedProtocol, httpcore.LocalProtocolError),
        )
        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(method, url, body, headers)
        except not_sent as exc:
            raise NotSent(f"{_host(url)} cannot be reached ({_words(exc)}).") from exc
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            TimeoutError,
        ) as exc:
            raise Unanswered(f"{_host(url)} did not answer ({_words(exc)}).") from exc

    async def post_json(self, url: str, body: bytes) -> tuple[int, bytes]:
        answer = await self.ask("POST", url, body, None)
        return answer.status, answer.body

    async def _exchange(
        self, method: str, url: str, body: bytes | None, headers: Mapping[bytes | str, bytes | str]
    ) -> Answer:
        times = {"connect": CONNECT_SECONDS, "read": self._seconds, "write": self._seconds, "pool": 5.0}
        asked = self._connections().stream(
            method, url, headers=headers, content=body, extensions={"timeout": times}
        )
        async with asked as response:
            received = bytearray()
            async for part in response.aiter_stream():
                received += part
                if len(received) > MAX_ANSWER:
                    raise Unanswered(f"{_host(url)} answered with more than {MAX_ANSWER:,} bytes.")
            return Answer(response.status, _retry_after(response.headers), bytes(received))

    def _connections(self) -> httpcore.AsyncConnectionPool:
        if self._pool is None:
            import httpcore

            self._pool = httpcore.AsyncConnectionPool(max_connections=20, keepalive_expiry=_IDLE_SECONDS)
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """In seconds; a date there is not worth reading."""
    told = next((value for name, value in headers if name.lower() == b"retry-after"), b"")
    try:
        seconds = float(told)
    except ValueError:
        return None
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _host(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _words(exc: Exception) -> str:
    return " ".join(str(exc).split())[:120] or type(exc).__name__
