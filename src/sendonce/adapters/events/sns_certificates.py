"""The certificates that SNS signs with: one that is pinned, or those fetched from SNS and remembered."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from sendonce.errors import BadInput, CertificateUnknown, Unavailable

T = TypeVar("T")

_MAX_BYTES = 16 * 1024
_FETCH_SECONDS = 5.0
CERTIFICATE_SECONDS = 8.0
"""How long a message waits for its certificate. SNS hangs up after 15 s."""
_MOST_KEPT = 1000
_MOST_WISHES = 1000
_MOST_FETCHES = 4
# SNS tries an HTTPS subscriber again after 20 s, three times: a failure must be forgotten sooner.
_BAD_SECONDS = 15.0


def fetch_certificate(url: str) -> bytes:
    """One GET, no redirects, bounded in size and time. The caller has checked the URL."""
    parts = urlsplit(url)
    deadline = time.monotonic() + _FETCH_SECONDS
    connection = http.client.HTTPSConnection(parts.netloc, timeout=_FETCH_SECONDS)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        if response.status != 200:
            raise Unavailable(f"{url} answered {response.status}.")
        content = b""
        while piece := response.read1(_MAX_BYTES):
            content += piece
            if len(content) > _MAX_BYTES or time.monotonic() > deadline:
                raise Unavailable(f"{url} sends more than {_MAX_BYTES} bytes or {_FETCH_SECONDS:g} s.")
        return content
    except (OSError, http.client.HTTPException) as exc:
        raise Unavailable(f"{url} could not be fetched: {exc}") from exc
    finally:
        connection.close()


@dataclass(slots=True)
class _Wish:
    """An address that messages have asked for, how many of them, and who waits for it."""

    asked: int = 0
    learning: Future[None] = field(default_factory=Future)


class Certificates:
    """Remembers good certificates, and for some seconds which addresses gave none.

    A stranger can make up addresses faster than they can be fetched, and which one is genuine is only known
    afterwards. So the address that most messages ask for is fetched first, a few at a time and each once:
    genuine messages all name the same one, and SNS repeats them. Nothing that a stranger does fills a room
    that a genuine certificate needs: where there is no room, the address that was asked for least goes.
    """

    def __init__(self, pinned_file: Path | None, fetch: Callable[[str], bytes]) -> None:
        self._pinned = _read_pinned(pinned_file) if pinned_file else None
        self._fetch = fetch
        self._good: dict[str, x509.Certificate] = {}
        self._bad: dict[str, tuple[float, str]] = {}
        self._wishes: dict[str, _Wish] = {}
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def get(self, url: str) -> x509.Certificate:
        """A certificate with an RSA key, at once; its dates are for the caller to check.

        Raises CertificateUnknown, and Unavailable where it could not be had some seconds ago: an event is
        evidence, and SNS drops it for ever on a 4xx.
        """
        known = self._pinned or self._good.get(url)
        if known is not None:
            return known
        with self._lock:
            if url in self._good:
                return self._good[url]
            failed_at, why = self._bad.get(url, (-_BAD_SECONDS, ""))
            if time.monotonic() - failed_at < _BAD_SECONDS:
                raise Unavailable(f"No certificate to check the SNS message with: {why}")
            raise CertificateUnknown(url, self._wish_for(url), CERTIFICATE_SECONDS)

    def _wish_for(self, url: str) -> Future[None]:
        if url not in self._wishes and len(self._wishes) >= _MOST_WISHES:
            waiting = {known: wish for known, wish in self._wishes.items() if known not in self._under_way}
            least = min(waiting, key=lambda known: waiting[known].asked)
            self._wishes.pop(least).learning.set_result(None)
        wish = self._wishes.setdefault(url, _Wish())
        wish.asked += 1
        if len(self._under_way) < _MOST_FETCHES and url not in self._under_way:
            self._under_way.add(url)
            threading.Thread(target=self._learn, args=(url,), name="sns-certificate", daemon=True).start()
        return wish.learning

    def _learn(self, url: str | None) -> None:
        """Fetch one address after the other, as long as some are wished for."""
        while url is not None:
            try:
                found: x509.Certificate | str = _rsa_certificate(self._fetch(url))
            except Exception as exc:  # noqa: BLE001 (whatever a made-up address leads to, the next one waits)
                found = str(exc) or type(exc).__name__
            url = self._put_away(url, found)

    def _put_away(self, url: str, found: x509.Certificate | str) -> str | None:
        """Keep what came of an address: its certificate, or why there is none; the next address."""
        with self._lock:
            if isinstance(found, str):
                _keep(self._bad, url, (time.monotonic(), found))
            else:
                _keep(self._good, url, found)
            self._under_way.discard(url)
            self._wishes.pop(url).learning.set_result(None)
            waiting = {known: wish for known, wish in self._wishes.items() if known not in self._under_way}
            following = max(waiting, key=lambda known: waiting[known].asked, default=None)
            if following is not None:
                self._under_way.add(following)
            return following


def _keep(room: dict[str, T], url: str, value: T) -> None:
    """The newest stay. Only genuine certificates take room among the good ones."""
    room.pop(url, None)
    while len(room) >= _MOST_KEPT:
        del room[next(iter(room))]
    room[url] = value


def _rsa_certificate(pem: bytes) -> x509.Certificate:
    certificate = x509.load_pem_x509_certificate(pem)
    if not isinstance(certificate.public_key(), RSAPublicKey):
        raise ValueError("it has no RSA key")
    return certificate


def _read_pinned(file: Path) -> x509.Certificate:
    try:
        return _rsa_certificate(file.read_bytes())
    except (OSError, ValueError) as exc:
        raise BadInput(
            f"SNS_SIGNING_CERT_FILE has value {str(file)!r}: {exc}. It must be a PEM file."
        ) from exc
