"""Who may come in: secrets compared in constant time, and guessers slowed down.

A right secret is always let in, also from an address that many wrong ones came from: behind a proxy
everybody has the proxy's address. So the limit is what keeps a flood of guesses cheap and out of the
log; what keeps the secret from being guessed is its length.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from typing import NoReturn

from starlette.exceptions import HTTPException
from starlette.requests import Request

_BURST = 20.0
_REFILL_PER_SECOND = 0.5
_MOST_PEERS = 4096

_UNAUTHORIZED = "unauthorized"
_SLOW_DOWN = "Too many failed attempts. Wait a minute."


class FailureLimit:
    """A token bucket for each peer that has failed. Bounded: the peer longest untouched is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._peers: dict[str, tuple[float, float]] = {}  # tokens left, and when that was

    def spend(self, peer: str) -> bool:
        """Note a failure; False when the peer has had too many of late."""
        left = self._left(peer)
        allowed = left >= 1
        self._peers.pop(peer, None)
        self._peers[peer] = (left - 1 if allowed else left, self._clock())
        if len(self._peers) > _MOST_PEERS:
            del self._peers[next(iter(self._peers))]
        return allowed

    def is_spent(self, peer: str) -> bool:
        """Whether the next failure of the peer is one too many."""
        return self._left(peer) < 1

    def _left(self, peer: str) -> float:
        now = self._clock()
        left, since = self._peers.get(peer, (_BURST, now))
        return min(_BURST, left + (now - since) * _REFILL_PER_SECOND)


class Gate:
    """Checks bearer secrets. An empty secret opens nothing."""

    def __init__(self, limit: FailureLimit | None = None) -> None:
        self._limit = limit or FailureLimit()

    def let_in(self, request: Request, shown: Iterable[str], secrets: Iterable[str]) -> None:
        """Pass when one of the shown tokens is one of the secrets; else 401, the same for every cause.

        429 instead for a peer that fails too often.
        """
        if not is_among(shown, secrets):
            self.turn_away(request)

    def turn_away(self, request: Request) -> NoReturn:
        self.note_failure(request)
        raise HTTPException(401, _UNAUTHORIZED, {"WWW-Authenticate": "Bearer"})

    def note_failure(self, request: Request) -> None:
        """429 for a peer that has failed too often; any other may get its answer."""
        if not self.tolerates(request):
            raise HTTPException(429, _SLOW_DOWN, {"Retry-After": "60"})

    def has_had_enough_of(self, request: Request) -> bool:
        """Whether the peer has failed too often for any work to be done at its word."""
        return self._limit.is_spent(peer_of(request))

    def tolerates(self, request: Request) -> bool:
        """Note a failure of the peer; whether it may still have its answer, or a line in the log."""
        return self._limit.spend(peer_of(request))


def is_among(shown: Iterable[str], secrets: Iterable[str]) -> bool:
    """Compares every token with every secret, by their hashes: neither length nor order shows in the time."""
    known = [_digest(secret) for secret in secrets if secret]
    found = False
    for token in shown:
        digest = _digest(token)
        for secret in known:
            found |= hmac.compare_digest(digest, secret)
    return found


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def bearer_tokens(request: Request) -> list[str]:
    """What is shown in the headers: Authorization: Bearer, or X-Mailout-Token."""
    headers = request.headers
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    tokens = [credentials.strip()] if scheme.lower() == "bearer" else []
    return tokens + [token.strip() for token in headers.getlist("x-mailout-token")[:4]]


def peer_of(request: Request) -> str:
    """The peer's address; of IPv6 the network, since whoever has one address has its whole /64."""
    return _network_of(request.client.host if request.client else "")


@lru_cache(maxsize=1024)
def _network_of(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host[:64]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return (int(address) >> 64).to_bytes(8, "big").hex()
    return host
