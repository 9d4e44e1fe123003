"""How Yandex Cloud knows us: an API key, an IAM token, or tokens that a service account's key makes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from sendonce.errors import BadSetting

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

# The JWT only has to live until it is exchanged; Yandex takes an hour at the most.
_JWT_SECONDS = 600
# A token is not used so shortly before its end: the request is on its way for a while.
_SPARE_SECONDS = 60
# Tokens live for up to twelve hours, and Yandex advises to renew them every hour.
_LONGEST_USE = 3600.0
# Yandex's own address is the audience of a JWT, also where a stand-in is asked.
AUDIENCE = "https://iam.api.cloud.yandex.net/iam/v1/tokens"

PostJson = Callable[[str, bytes], Awaitable[tuple[int, bytes]]]
"""Posts a JSON body; the status and the body of the answer."""


class NoToken(Exception):
    """There is no token to show at the moment. Its message says why; nothing secret is in it.

    ``refused``: the key itself is not taken.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Authority(Protocol):
    async def header(self) -> str:
        """What to show. Raises NoToken."""

    def refused(self, header: str) -> None:
        """What was shown is not good any more."""


@dataclass(frozen=True, slots=True)
class FixedCredential:
    """``scheme`` is Api-Key or Bearer."""

    scheme: str
    secret: str = field(repr=False)

    async def header(self) -> str:
        return f"{self.scheme} {self.secret}"

    def refused(self, header: str) -> None:
        """There is no other."""


@dataclass(frozen=True, slots=True)
class ServiceAccountKey:
    key_id: str
    account_id: str
    private_key: RSAPrivateKey = field(repr=False)

    def signed_jwt(self, now: int) -> str:
        """PS256 is the one algorithm that Yandex takes."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        head = {"typ": "JWT", "alg": "PS256", "kid": self.key_id}
        claims = {"iss": self.account_id, "aud": AUDIENCE, "iat": now, "exp": now + _JWT_SECONDS}
        signed = b".".join(_url_safe(json.dumps(part).encode()) for part in (head, claims))
        # RFC 7518 §3.5: the salt is as long as the hash.
        padded = padding.PSS(padding.MGF1(hashes.SHA256()), salt_length=hashes.SHA256.digest_size)
        signature = self.private_key.sign(signed, padded, hashes.SHA256())
        return b".".join((signed, _url_safe(signature))).decode("ascii")


def read_service_account_key(text: str, where: str) -> ServiceAccountKey:
    """From the JSON that ``yc iam key create`` writes. Raises BadSetting, without any part of the key."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        content = json.loads(text)
        key_id, account_id, pem = content["id"], content["service_account_id"], content["private_key"]
        # Yandex writes a line of warning above the PEM.
        private_key = load_pem_private_key(pem[pem.index("-----BEGIN") :].encode(), password=None)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise _unusable(where, type(exc).__name__) from None
    if not isinstance(private_key, RSAPrivateKey):
        raise _unusable(where, "not an RSA key")
    return ServiceAccountKey(str(key_id), str(account_id), private_key)


def _unusable(where: str, why: str) -> BadSetting:
    return BadSetting(
        f"{where} is not a service account's authorized key ({why}). Make one with "
        "'yc iam key create --service-account-name NAME --output key.json'."
    )


class ServiceAccountTokens:
    """Exchanges signed JWTs for IAM tokens, and keeps a token as long as it is good."""

    def __init__(
        self, key: ServiceAccountKey, iam_url: str, post: PostJson, now: Callable[[], float]
    ) -> None:
        self._key = key
        self._url = f"{iam_url}/iam/v1/tokens"
        self._post = post
        self._now = now
        self._token = ""
        self._good_until = 0.0
        self._renewing = asyncio.Lock()

    async def header(self) -> str:
        async with self._renewing:
            if not self._token or self._now() >= self._good_until:
                await self._renew()
        return f"Bearer {self._token}"

    def refused(self, header: str) -> None:
        """Of ten requests with one token, the first renews it for all."""
        if header == f"Bearer {self._token}":
            self._token = ""

    async def _renew(self) -> None:
        now = self._now()
        status, body = await self._post(
            self._url, json.dumps({"jwt": self._key.signed_jwt(int(now))}).encode()
        )
        if status != 200:
            raise NoToken(
                f"{self._url} answered HTTP {status} to the service account's key: check that the key and "
                "its account exist, and this machine's clock.",
                refused=400 <= status < 429,
            )
        try:
            answer = json.loads(body)
            token, expires = answer["iamToken"], _unix_time(answer["expiresAt"])
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise NoToken(f"{self._url} did not answer with a token ({type(exc).__name__}).") from exc
        if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
            raise NoToken(f"{self._url} answered with a token that cannot be used.")
        self._token = token
        self._good_until = min(expires - _SPARE_SECONDS, now + _LONGEST_USE)


def _unix_time(moment: str) -> float:
    """Of RFC 3339, without the fractions of a second: Yandex writes nine digits, Python reads six."""
    whole = moment.partition(".")[0].removesuffix("Z")
    return datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()


def _url_safe(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
