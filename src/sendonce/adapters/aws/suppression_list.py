"""The suppression list of an SES account in a region (API v2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sendonce.adapters.aws.clients import make_client
from sendonce.adapters.aws.credentials import CredentialSource
from sendonce.domain.people.provider_lists import ListedAddress
from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.errors import Unavailable

_REASONS = {"BOUNCE": SuppressionReason.BOUNCE, "COMPLAINT": SuppressionReason.COMPLAINT}
_NAMES = {ours: theirs for theirs, ours in _REASONS.items()}
_PAGE = 1000


class SesSuppressionList:
    """ports.ProviderList. Every call may be made twice without harm, so the client may retry."""

    def __init__(self, name: str, region: str, credentials: CredentialSource, endpoint: str | None) -> None:
        self.name = name
        self._made_of = (region, credentials, endpoint)
        self._made: Any = None

    def pages(self, since: datetime | None) -> Iterator[Sequence[ListedAddress]]:
        wanted: dict[str, Any] = {"PageSize": _PAGE} | ({"StartDate": since} if since else {})
        while True:
            with self._asked("ListSuppressedDestinations"):
                page = self._client.list_suppressed_destinations(**wanted)
            yield [
                ListedAddress(item["EmailAddress"], _REASONS.get(item["Reason"], SuppressionReason.BOUNCE))
                for item in page.get("SuppressedDestinationSummaries", ())
            ]
            if not page.get("NextToken"):
                return
            wanted["NextToken"] = page["NextToken"]

    def add(self, listed: ListedAddress) -> None:
        with self._asked("PutSuppressedDestination"):
            self._client.put_suppressed_destination(EmailAddress=listed.address, Reason=_NAMES[listed.reason])

    def forget(self, address: str) -> None:
        with self._asked("DeleteSuppressedDestination", unless="NotFoundException"):
            self._client.delete_suppressed_destination(EmailAddress=address)

    @property
    def _client(self) -> Any:
        if self._made is None:
            self._made = make_client("sesv2", *self._made_of)
        return self._made

    @contextmanager
    def _asked(self, call: str, unless: str = "") -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as exc:
            error = exc.response.get("Error", {})
            if not unless or error.get("Code") != unless:
                told = f"{error.get('Code')} {error.get('Message')}"
                raise Unavailable(
                    f"{self.name} refused {call}: {told} The credentials need ses:{call}, and the account "
                    "production access; the rest is done next time."
                ) from exc
        except BotoCoreError as exc:
            raise Unavailable(f"{self.name} did not answer {call}: {exc}") from exc
