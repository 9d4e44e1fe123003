"""Requests to SES: the JSON of SendEmail, signed with the time of the letter's claim."""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted

from pybase64 import b64encode

from sendonce.adapters.aws.credentials import Credentials
from sendonce.adapters.aws.http1 import request_bytes
from sendonce.adapters.aws.sigv4 import Signer, sign
from sendonce.domain.engine.parcels import Parcel

SEND_PATH = "/v2/email/outbound-emails"


class SesRequests:
    def __init__(self, host: str, region: str, configuration_set: str | None) -> None:
        self._headers = {"Host": host, "Content-Type": "application/json"}
        self._region = region
        self._configuration_set = configuration_set
        self._of_claim: _OfClaim | None = None

    def of_letter(self, parcel: Parcel, credentials: Credentials) -> bytes:
        tags = (("job", parcel.job_id), ("attempt", str(parcel.attempt)))
        body = self.send_email_body(parcel.sender, parcel.recipient, parcel.content, tags)
        of_claim = self._of_claim
        if of_claim is None or not of_claim.fits(credentials, parcel.claimed_at):
            of_claim = _OfClaim(self._headers, self._region, credentials, parcel.claimed_at)
            self._of_claim = of_claim
        return of_claim.request(body)

    def signed(self, method: str, path: str, body: bytes, credentials: Credentials, when: datetime) -> bytes:
        headers = self._headers | sign(
            method,
            path,
            self._headers,
            body,
            credentials=credentials,
            region=self._region,
            service="ses",
            when=when,
        )
        return request_bytes(method, path, headers, body)

    def send_email_body(
        self, sender: str, recipient: str, content: bytes, tags: tuple[tuple[str, str], ...]
    ) -> bytes:
        """JSON by hand: base64 needs no escaping, and a letter is large."""
        named = ",".join([f'{{"Name":"{name}","Value":{quoted(value)}}}' for name, value in tags])
        head = (
            f'{{{_fixed_fields(sender, self._configuration_set)},"EmailTags":[{named}],'
            f'"Destination":{{"ToAddresses":[{quoted(recipient)}]}},"Content":{{"Raw":{{"Data":"'
        )
        return b"".join((head.encode("ascii"), b64encode(content), b'"}}}'))


class _OfClaim:
    """The requests of one claim: they differ in their bodies and signatures only."""

    def __init__(
        self, headers: dict[str, str], region: str, credentials: Credentials, claimed_at: datetime
    ) -> None:
        self._credentials = credentials
        self._claimed_at = claimed_at
        self._signer = Signer(
            "POST",
            SEND_PATH,
            headers,
            credentials=credentials,
            region=region,
            service="ses",
            when=claimed_at,
        )
        given = headers | self._signer.added | {"Authorization": self._signer.authorization}
        lines = "\r\n".join([f"{name}: {value}" for name, value in given.items()])
        self._head = f"POST {SEND_PATH} HTTP/1.1\r\n{lines}"  # and the signature

    def fits(self, credentials: Credentials, claimed_at: datetime) -> bool:
        return self._credentials is credentials and self._claimed_at == claimed_at

    def request(self, body: bytes) -> bytes:
        head = f"{self._head}{self._signer.signature(body)}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode("ascii") + body


@lru_cache(maxsize=64)
def _fixed_fields(sender: str, configuration_set: str | None) -> str:
    fields = {"FromEmailAddress": sender}
    if configuration_set:
        fields["ConfigurationSetName"] = configuration_set
    return json.dumps(fields)[1:-1]
