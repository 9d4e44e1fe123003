"""One page from a site, bounded in bytes and in time, whatever the server does."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

import httpcore

from sendonce.adapters.web.guarded_network import AddressRefused, GuardedNetwork
from sendonce.adapters.web.urls import Place

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LONGEST_LOCATION = 8192


class PageRefused(Exception):
    """Why a page was not read, in words for people. Without ``connected`` no connection was made,
    in the clear or under TLS: the other scheme may be worth a try. ``passing``: so may another day."""

    def __init__(self, reason: str, *, connected: bool = True, passing: bool = False) -> None:
        super().__init__(reason)
        self.connected = connected
        self.passing = passing


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """``most_bytes`` holds for what comes over the wire and, again, for what it unpacks to."""

    most_bytes: int = 2 << 20
    seconds: float = 20.0
    connect_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """``redirect`` is where to go instead, as it was written but for letters outside ASCII: these are
    percent-encoded byte by byte, as a browser does, whichever charset the site meant.
    """

    status: int
    content_type: str
    body: bytes = b""
    redirect: str | None = None
    retry_after: str = ""


class PageFetcher:
    """One connection at a time. To go to another host closes it."""

    def __init__(
        self, network: GuardedNetwork, tls: ssl.SSLContext, user_agent: str, limits: FetchLimits
    ) -> None:
        self._limits = limits
        # No cookies, no proxy of the environment, one connection.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, max_connections=1, keepalive_expiry=15.0, network_backend=network
        )
        self._headers = [
            (b"User-Agent", user_agent.encode("latin-1", "replace")),
            (b"Accept", b"text/html,application/xhtml+xml;q=0.9,*/*;q=0.1"),
            (b"Accept-Language", b"ru,en;q=0.7"),
            # What is asked for is what can be unpacked within bounds.
            (b"Accept-Encoding", b"gzip"),
        ]

    async def close(self) -> None:
        await self._pool.aclose()

    async def get(self, place: Place, most_bytes: int | None = None) -> Answer:
        """The answer, its body cut at ``most_bytes``. Raises PageRefused."""
        try:
            async with asyncio.timeout(self._limits.seconds), self._response(place) as response:
                return await self._read(response, most_bytes or self._limits.most_bytes)
        except TimeoutError as exc:
            raise PageRefused(f"it takes more than {self._limits.seconds:g} s", passing=True) from exc
        except AddressRefused as exc:
            raise PageRefused(str(exc)) from exc
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
            reason = f"{place.host} cannot be reached{_why(exc)}"
            raise PageRefused(reason, connected=False, passing=True) from exc
        except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as exc:
            raise PageRefused(f"{place.host} broke off", passing=True) from exc
        except (httpcore.ProtocolError, zlib.error) as exc:
            raise PageRefused(f"{place.host} answers with what is not HTTP, or with endless headers") from exc

    @asynccontextmanager
    async def _response(self, place: Place) -> AsyncIterator[httpcore.Response]:
        url = httpcore.URL(
            scheme=place.scheme.encode(),
            host=place.host.encode(),
            port=place.port,
            target=place.target.encode(),
        )
        times = {
            "connect": self._limits.connect_seconds,
            "read": self._limits.seconds,
            "write": self._limits.seconds,
            "pool": self._limits.seconds,
        }
        async with self._pool.stream(
            "GET", url, headers=self._headers, extensions={"timeout": times}
        ) as response:
            yield response

    async def _read(self, response: httpcore.Response, most: int) -> Answer:
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
        location = headers.get(b"location")
        kind = headers.get(b"content-type", "")
        if response.status in _REDIRECTS and location is not None:
            redirect = quote(location[:_LONGEST_LOCATION].encode("latin-1"), safe=range(128))
            return Answer(response.status, kind, redirect=redirect)
        if response.status != 200:
            return Answer(response.status, kind, retry_after=headers.get(b"retry-after", "")[:40])
        unpack = _unpacker(headers.get(b"content-encoding", ""))
        pieces: list[bytes] = []
        wire = size = 0
        async for piece in response.aiter_stream():
            wire += len(piece)
            plain = unpack(piece, most - size)
            pieces.append(plain)
            size += len(plain)
            if wire > most or size >= most:
                break
        return Answer(200, kind, b"".join(pieces)[:most])


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    """Unpacks no more than there is room for: what a bomb would unpack to is never made."""
    if encoding.strip().lower() in ("", "identity"):
        return lambda piece, room: piece[:room]
    if encoding.strip().lower() in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress
    raise PageRefused(f"it is packed as {encoding[:20]!r}, which was not asked for")


def _why(exc: Exception) -> str:
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return ": its certificate is not good"
        cause = cause.__cause__ or cause.__context__
    return ""
