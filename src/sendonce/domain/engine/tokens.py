"""The token in a link of a letter: names a message job, proves that we made it, shows no address.

    version (1 byte) | job id (16 bytes) | HMAC-SHA256 of both, first 16 bytes     33 bytes, 44 characters

33 bytes fill base64 exactly: no padding and no spare bits, so a token has one spelling only.
It does not expire, for an opt-out link must work for as long as the letter lies in a mailbox.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Iterable
from functools import lru_cache

from sendonce.errors import BadInput

_VERSION = b"\x01"
# One secret signs links of several kinds: what is signed says what it is for.
UNSUBSCRIBE = b"sendonce unsubscribe\x00"
VIEW = b"sendonce view\x00"
CONFIRM = b"sendonce confirm\x00"
_MAC_LENGTH = 16
_URL_SAFE = bytes.maketrans(b"+/", b"-_")

_JOB_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch
_TOKEN = re.compile(r"[A-Za-z0-9_-]{44}").fullmatch


def sign_token(job_id: str, secret: bytes, purpose: bytes = UNSUBSCRIBE) -> str:
    """The token of a job. Raises BadInput for an id that is not a UUID in its usual spelling."""
    if not _JOB_ID(job_id):
        raise BadInput(f"{job_id[:80]!r} is not a job id: it must be a UUID in lower case.")
    if not secret:
        raise BadInput("The unsubscribe secret is empty: anyone could forge links. Set UNSUBSCRIBE_SECRET.")
    claim = _VERSION + bytes.fromhex(job_id.replace("-", ""))
    signed = claim + _mac(claim, secret, purpose)
    return b2a_base64(signed, newline=False).translate(_URL_SAFE).decode("ascii")


def read_token(token: str, secret: bytes, purpose: bytes = UNSUBSCRIBE) -> str | None:
    """The job id of a token that this secret signed for this purpose; None for anything else."""
    if not secret or not _TOKEN(token):
        return None
    decoded = urlsafe_b64decode(token)
    claim, mac = decoded[:-_MAC_LENGTH], decoded[-_MAC_LENGTH:]
    if not hmac.compare_digest(mac, _mac(claim, secret, purpose)) or not claim.startswith(_VERSION):
        return None
    return str(uuid.UUID(bytes=claim[1:]))


def read_token_of_any(token: str, secrets: Iterable[bytes], purpose: bytes = UNSUBSCRIBE) -> str | None:
    """The same for several secrets: the one in force, and former ones whose letters are still about."""
    found = [read_token(token, secret, purpose) for secret in secrets]
    return next((job_id for job_id in found if job_id is not None), None)


def secret_fingerprint(secret: bytes) -> str:
    """Tells one secret from another without showing it."""
    return hashlib.sha256(b"sendonce unsubscribe fingerprint\x00" + secret).hexdigest()[:12]


def _mac(claim: bytes, secret: bytes, purpose: bytes) -> bytes:
    keyed_inner, keyed_outer = _keyed(secret, purpose)
    inner, outer = keyed_inner.copy(), keyed_outer.copy()
    inner.update(claim)
    outer.update(inner.digest())
    return outer.digest()[:_MAC_LENGTH]


@lru_cache(maxsize=16)
def _keyed(secret: bytes, purpose: bytes) -> tuple[hashlib._Hash, hashlib._Hash]:
    """The two hashes of HMAC (RFC 2104) with the key, and the purpose, already taken in.

    The key is the same for a million letters; starting from here signs in half the time of hmac.digest.
    """
    key = (hashlib.sha256(secret).digest() if len(secret) > 64 else secret).ljust(64, b"\x00")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + purpose)
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in key))
    return inner, outer
