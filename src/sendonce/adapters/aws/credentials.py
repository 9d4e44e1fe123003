"""Who we are to AWS: keys from the settings, or what the usual chain finds.

The chain (environment, profile, SSO, container, instance role) is botocore's, loaded only when no
keys were given. It may call other machines and then blocks, so async code asks ``FreshCredentials``.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from sendonce.errors import BadInput, Unavailable

# botocore renews temporary credentials no later than ten minutes before they expire, so what it gave
# a minute ago is still good.
_ASK_AGAIN_SECONDS = 60.0

_HEADER_SAFE = re.compile(r"[!-~]+")

_NOTHING_FOUND = (
    "No AWS credentials were found. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
    "(and AWS_SESSION_TOKEN for temporary keys), or AWS_PROFILE, or give this machine a role."
)


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """The key and the token travel in headers: a stray line end must not get there."""
        for name, value in (
            ("AWS_ACCESS_KEY_ID", self.access_key),
            ("AWS_SECRET_ACCESS_KEY", self.secret_key),
        ):
            if not _HEADER_SAFE.fullmatch(value):
                raise BadInput(f"{name} is empty or has spaces or control characters in it. Copy it again.")
        if self.token is not None and not _HEADER_SAFE.fullmatch(self.token):
            raise BadInput(
                "AWS_SESSION_TOKEN is empty or has spaces or control characters in it. Copy it again."
            )


class CredentialSource(Protocol):
    def current(self) -> Credentials:
        """What to sign with now. May block for seconds, may be called from any thread. Raises Unavailable."""


@dataclass(frozen=True, slots=True)
class StaticCredentials:
    """Keys that were given in the settings."""

    credentials: Credentials

    def current(self) -> Credentials:
        return self.credentials


class ChainCredentials:
    """The usual chain of AWS. Temporary credentials are renewed before they expire."""

    def __init__(self, profile: str | None = None) -> None:
        self._profile = profile
        self._lock = threading.Lock()  # building a botocore session is not thread-safe
        self._found: Any = None

    def current(self) -> Credentials:
        from botocore.exceptions import BotoCoreError

        with self._lock:
            try:
                found = self._found or self._search()
                frozen = found.get_frozen_credentials() if found else None
            except BotoCoreError as exc:
                raise Unavailable(f"AWS credentials could not be read: {exc}. {_NOTHING_FOUND}") from exc
            if frozen is None or not frozen.access_key:
                raise Unavailable(_NOTHING_FOUND)
            self._found = found
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    def _search(self) -> Any:
        from botocore.session import Session

        return Session(profile=self._profile).get_credentials()


def credential_source(
    access_key: str | None = None,
    secret_key: str | None = None,
    token: str | None = None,
    profile: str | None = None,
) -> CredentialSource:
    """Keys where both are given, otherwise the chain."""
    if access_key and secret_key:
        return StaticCredentials(Credentials(access_key, secret_key, token or None))
    if access_key or secret_key:
        missing = "AWS_SECRET_ACCESS_KEY" if access_key else "AWS_ACCESS_KEY_ID"
        raise BadInput(
            f"{missing} is missing: the key id and the secret key go together. Set both or neither."
        )
    return ChainCredentials(profile)


class FreshCredentials:
    """Credentials for an event loop: a thread asks the source, once a minute, for one task at a time."""

    def __init__(self, source: CredentialSource) -> None:
        self._source = source
        self._known: Credentials | None = None
        self._asked = 0.0
        self._asking = asyncio.Lock()

    def known(self) -> Credentials | None:
        """What was read less than a minute ago, without waiting."""
        if self._known is not None and time.monotonic() - self._asked < _ASK_AGAIN_SECONDS:
            return self._known
        return None

    async def get(self) -> Credentials:
        async with self._asking:
            known = self.known()
            if known is None:
                known = self._known = await asyncio.to_thread(self._source.current)
                self._asked = time.monotonic()
            return known

    def forget(self) -> None:
        """AWS did not like them: ask anew before the next request."""
        self._known = None
