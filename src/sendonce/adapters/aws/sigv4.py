"""AWS Signature Version 4 for requests with a plain path and no query string.

The signing date is an argument, never "now": AWS refuses a request whose signature date is some
minutes old, and that refusal is the fence which keeps a zombie's late request out (a letter is
signed with the time of its claim).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote

from sendonce.adapters.aws.credentials import Credentials

_ALGORITHM = "AWS4-HMAC-SHA256"


class Signer:
    """Signs requests that differ in their bodies only, as the letters of one claim do.

    They must carry ``headers`` as given, ``Host`` among them, then ``added``, and ``Authorization``: what
    ``authorization`` says, followed by the signature.
    """

    def __init__(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        credentials: Credentials,
        region: str,
        service: str,
        when: datetime,
    ) -> None:
        stamp = _stamp(when)
        self.added = {"X-Amz-Date": stamp}
        if credentials.token:
            self.added["X-Amz-Security-Token"] = credentials.token
        lines, names = _canonical_headers({**headers, **self.added})
        scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
        self.authorization = (
            f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature="
        )
        path = quote(path, safe="/~")
        self._canonical = hashlib.sha256(f"{method}\n{path}\n\n{lines}\n{names}\n".encode())
        self._to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n"
        self._key = _signing_key(credentials.secret_key, stamp[:8], region, service)

    def signature(self, body: bytes) -> str:
        canonical = self._canonical.copy()
        canonical.update(hashlib.sha256(body).hexdigest().encode())
        return hmac.digest(self._key, f"{self._to_sign}{canonical.hexdigest()}".encode(), "sha256").hex()


def sign(
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: Credentials,
    region: str,
    service: str,
    when: datetime,
) -> dict[str, str]:
    """The headers to add to a request; it must carry ``headers``, ``Host`` among them, as given."""
    signer = Signer(method, path, headers, credentials=credentials, region=region, service=service, when=when)
    return signer.added | {"Authorization": signer.authorization + signer.signature(body)}


def _canonical_headers(headers: Mapping[str, str]) -> tuple[str, str]:
    """The ``name:value`` lines in the order of their names, and the names joined by semicolons."""
    pairs = sorted((name.lower(), value) for name, value in headers.items())
    lines = "".join([f"{name}:{' '.join(value.split())}\n" for name, value in pairs])
    return lines, ";".join([name for name, _ in pairs])


def _stamp(when: datetime) -> str:
    if when.tzinfo is None:
        raise ValueError(f"a signing date needs a time zone, this has none: {when.isoformat()}")
    return when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


@lru_cache(maxsize=16)
def _signing_key(secret_key: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
