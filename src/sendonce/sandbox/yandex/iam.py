"""Tokens for a service account. Its key is made when somebody asks for it; its JWTs are really checked."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from sendonce.sandbox.http_server import Reply, json_reply
from sendonce.sandbox.yandex.refusals import YandexRefusal

AUDIENCE = "https://iam.api.cloud.yandex.net/iam/v1/tokens"
_ACCOUNT = "ajesandboxaccount000"
_KEY_ID = "ajesandboxkey0000000"


class Iam:
    def __init__(self, directory: Path, token_seconds: float, now: Callable[[], float]) -> None:
        self.key_file = directory / "yandex-key.json"
        self.token_seconds = token_seconds
        self.issued: dict[str, float] = {}
        self._now = now

    def make_key(self) -> dict[str, str]:
        """The authorized key, as ``yc iam key create`` writes it."""
        if not self.key_file.exists():
            from cryptography.hazmat.primitives import serialization as form
            from cryptography.hazmat.primitives.asymmetric import rsa

            key = rsa.generate_private_key(65537, 2048)
            pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()
            warning = f"PLEASE DO NOT REMOVE THIS LINE! Yandex.Cloud SA Key ID <{_KEY_ID}>\n"
            content = {"id": _KEY_ID, "service_account_id": _ACCOUNT, "private_key": warning + pem}
            self.key_file.write_text(json.dumps(content))
        made: dict[str, str] = json.loads(self.key_file.read_text())
        return made

    def exchange(self, body: bytes) -> Reply:
        try:
            self._check(str(json.loads(body)["jwt"]))
        except (ValueError, KeyError, TypeError) as exc:
            raise YandexRefusal(400, 3, "JWT is malformed.") from exc
        now = self._now()
        token = f"t1.{secrets.token_hex(24)}"
        self.issued[token] = now + self.token_seconds
        expires = datetime.fromtimestamp(self.issued[token], UTC).strftime("%Y-%m-%dT%H:%M:%S.123456789Z")
        return json_reply({"iamToken": token, "expiresAt": expires})

    def knows(self, token: str) -> bool:
        return self.issued.get(token, 0.0) > self._now()

    def _check(self, jwt: str) -> None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        head, claims, signature = jwt.split(".")
        padded = padding.PSS(padding.MGF1(hashes.SHA256()), salt_length=hashes.SHA256.digest_size)
        try:
            self._public_key.verify(_bytes(signature), f"{head}.{claims}".encode(), padded, hashes.SHA256())
        except InvalidSignature as exc:
            raise YandexRefusal(401, 16, "JWT signature is not valid.") from exc
        said, told, now = json.loads(_bytes(head)), json.loads(_bytes(claims)), self._now()
        good = (
            said == {"typ": "JWT", "alg": "PS256", "kid": _KEY_ID}
            and (told["iss"], told["aud"]) == (_ACCOUNT, AUDIENCE)
            and told["exp"] - told["iat"] <= 3600
            and told["iat"] - 60 <= now < told["exp"]
        )
        if not good:
            raise YandexRefusal(401, 16, "JWT is not valid.")

    @cached_property
    def _public_key(self) -> Any:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = self.make_key()["private_key"]
        return load_pem_private_key(pem[pem.index("-----BEGIN") :].encode(), password=None).public_key()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
