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
    stamp = _stamp(when)
    added = {"X-Amz-Date": stamp}
    if credentials.token:
        added["X-Amz-Security-Token"] = credentials.token
    lines, names = _canonical_headers((*headers.items(), *added.items()))
    digest = hashlib.sha256(body).hexdigest()
    canonical = f"{method}\n{_canonical_path(path)}\n\n{lines}\n{names}\n{digest}"
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = _signing_key(credentials.secret_key, stamp[:8], region, service)
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    added["Authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return added


@lru_cache(maxsize=64)
def _canonical_headers(headers: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """The ``name:value`` lines in the order of their names, and the names joined by semicolons."""
    pairs = sorted((name.lower(), value) for name, value in headers)
    lines = "".join([f"{name}:{' '.join(value.split())}\n" for name, value in pairs])
    return lines, ";".join([name for name, _ in pairs])


@lru_cache(maxsize=64)
def _canonical_path(path: str) -> str:
    return quote(path, safe="/~")


@lru_cache(maxsize=64)
def _stamp(when: datetime) -> str:
    """All letters of a claim share its time, so this is computed once a claim."""
    if when.tzinfo is None:
        raise ValueError(f"a signing date needs a time zone, this has none: {when.isoformat()}")
    return when.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


@lru_cache(maxsize=16)
def _signing_key(secret_key: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
