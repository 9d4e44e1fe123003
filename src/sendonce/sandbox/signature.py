"""Is a request signed with our key, for our region, and in time? AWS Signature Version 4, checked."""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

from sendonce.sandbox.http_server import Request
from sendonce.sandbox.refusals import ServiceRefusal
from sendonce.sandbox.settings import SandboxSettings

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=(?P<key>[^/,\s]+)/(?P<day>\d{8})/(?P<region>[a-z0-9-]+)"
    r"/(?P<service>[a-z0-9-]+)/aws4_request, *SignedHeaders=(?P<headers>[a-z0-9;_-]+)"
    r", *Signature=(?P<signature>[0-9a-f]{64})"
)
_STAMP = "%Y%m%dT%H%M%SZ"


def check_signature(request: Request, service: str, settings: SandboxSettings, now: float) -> None:
    """Raise the refusal that AWS would answer with, or return."""
    header = request.headers.get("authorization", "")
    if not header:
        raise ServiceRefusal(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
    parts = _AUTHORIZATION.fullmatch(header.strip())
    if parts is None:
        raise ServiceRefusal(
            403, "IncompleteSignatureException", "The Authorization header is not a Signature Version 4."
        )
    stamp = request.headers.get("x-amz-date", "")
    _check_date(stamp, settings.signature_window, now)
    if settings.secret_access_key:
        _check_scope(parts, stamp, service, settings)
        _check_digest(request, parts, stamp, settings.secret_access_key)


def _check_date(stamp: str, window: float, now: float) -> None:
    """An old signature is refused, whoever sends it: what a stopped sender sends late goes nowhere."""
    try:
        signed_at = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ServiceRefusal(
            403, "IncompleteSignatureException", f"Date must be in ISO-8601 'basic format'. Got '{stamp}'."
        ) from None
    span = f"{window / 60:g} min."
    if signed_at < now - window:
        raise ServiceRefusal(
            403,
            "InvalidSignatureException",
            f"Signature expired: {stamp} is now earlier than {_stamp(now - window)} ({_stamp(now)} - {span})",
        )
    if signed_at > now + window:
        raise ServiceRefusal(
            403,
            "InvalidSignatureException",
            f"Signature not yet current: {stamp} is still later than {_stamp(now + window)} "
            f"({_stamp(now)} + {span})",
        )


def _stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime(_STAMP)


def _check_scope(parts: re.Match[str], stamp: str, service: str, settings: SandboxSettings) -> None:
    if parts["key"] != settings.access_key_id:
        raise ServiceRefusal(
            403, "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    if (parts["region"], parts["service"], parts["day"]) != (settings.region, service, stamp[:8]):
        raise ServiceRefusal(
            403,
            "InvalidSignatureException",
            f"Credential should be scoped to a valid region, not '{parts['region']}', "
            f"and to service '{service}', not '{parts['service']}'.",
        )


def _check_digest(request: Request, parts: re.Match[str], stamp: str, secret: str) -> None:
    scope = f"{parts['day']}/{parts['region']}/{parts['service']}/aws4_request"
    canonical = _canonical_request(request, parts["headers"], parts["service"])
    to_sign = "\n".join(
        ("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode("latin-1")).hexdigest())
    )
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    expected = hmac.digest(key, to_sign.encode(), "sha256").hex()
    if not hmac.compare_digest(expected, parts["signature"]):
        raise ServiceRefusal(
            403,
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. Check your AWS "
            "Secret Access Key and signing method. Consult the service documentation for details.",
        )


def _canonical_request(request: Request, signed_headers: str, service: str) -> str:
    query = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(parse_qsl(request.query, keep_blank_values=True))
    )
    headers = "".join(
        f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed_headers.split(";")
    )
    # Outside S3 the path is percent-encoded once more, on top of the encoding it travels with.
    path = request.path if service == "s3" else quote(request.path, safe="/-_.~")
    payload = hashlib.sha256(request.body).hexdigest()
    return "\n".join((request.method, path, query, headers, signed_headers, payload))
