"""The certificates that SNS signs with: one that is pinned, or those fetched from SNS and remembered."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from sendonce.errors import BadInput, Unavailable

_MAX_BYTES = 16 * 1024
_FETCH_SECONDS = 5.0
_MAX_GOOD = 64
_MAX_BAD = 64
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


class Certificates:
    """Remembers good certificates, and failures for some seconds.

    Failures have a room of their own: a stranger who makes up addresses cannot push out the good
    ones, and cannot make us fetch more often than the room has places.
    """

    def __init__(self, pinned_file: Path | None, fetch: Callable[[str], bytes]) -> None:
        self._pinned = _read_pinned(pinned_file) if pinned_file else None
        self._fetch = fetch
        self._good: dict[str, x509.Certificate] = {}
        self._bad: dict[str, float] = {}
        self._fetching = threading.Lock()

    def get(self, url: str) -> x509.Certificate:
        """A certificate with an RSA key; its dates are for the caller to check.

        Raises Unavailable where it cannot be had: an event is evidence, and SNS drops it for ever on a 4xx.
        """
        return self._pinned or self._good.get(url) or self._learn(url)

    def _learn(self, url: str) -> x509.Certificate:
        with self._fetching:
            if url in self._good:
                return self._good[url]
            self._make_room(url)
            try:
                certificate = _rsa_certificate(self._fetch(url))
            except (ValueError, Unavailable) as exc:
                self._bad[url] = time.monotonic()
                raise Unavailable(f"No certificate to check the SNS message with: {exc}") from exc
            while len(self._good) >= _MAX_GOOD:
                del self._good[next(iter(self._good))]
            self._good[url] = certificate
            return certificate

    def _make_room(self, url: str) -> None:
        moment = time.monotonic()
        self._bad = {known: since for known, since in self._bad.items() if moment - since < _BAD_SECONDS}
        if url in self._bad:
            raise Unavailable(f"{url} gave no certificate some seconds ago.")
        if len(self._bad) >= _MAX_BAD:
            raise Unavailable("Too many SNS certificates could not be fetched in the last seconds.")


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
