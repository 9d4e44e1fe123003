"""SNS: the topic's envelopes and their signatures, its certificate, and the subscription."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote
from xml.sax.saxutils import escape

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from sendonce.sandbox.events import Event, event_body, iso
from sendonce.sandbox.http_server import Reply, Request
from sendonce.sandbox.refusals import ServiceRefusal
from sendonce.sandbox.settings import SandboxSettings
from sendonce.sandbox.signature import check_signature
from sendonce.sandbox.state import WorldState

NOTIFICATION = "Notification"
CONFIRMATION = "SubscriptionConfirmation"
# Which fields are signed, and in which order, is fixed by SNS for each type.
_SIGNED_FIELDS = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    CONFIRMATION: ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}


class SigningKey:
    """The topic's RSA key and certificate, made once for a directory and kept there."""

    def __init__(self, directory: Path, region: str) -> None:
        self.certificate_file = directory / "sns-signing.pem"
        key_file = directory / "sns-signing.key"
        if not (key_file.exists() and self.certificate_file.exists()):
            _make_certificate(key_file, self.certificate_file)
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        self._key = key
        self.certificate = self.certificate_file.read_bytes()
        # The name is all that a receiver sees before it fetches: it must pass for a real one.
        name = hashlib.sha256(self.certificate).hexdigest()[:32]
        self.path = f"/SimpleNotificationService-{name}.pem"
        self.url = f"https://sns.{region}.amazonaws.com{self.path}"

    def sign(self, text: bytes, version: int) -> str:
        algorithm = hashes.SHA256() if version == 2 else hashes.SHA1()  # noqa: S303
        return base64.b64encode(self._key.sign(text, padding.PKCS1v15(), algorithm)).decode()


def _make_certificate(key_file: Path, certificate_file: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    key_bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(key_bytes)
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


@dataclass(slots=True)
class Envelope:
    """What is posted to a subscriber; complete once it has its signature."""

    fields: dict[str, str]
    signature_version: int
    certificate_url: str

    @property
    def signed_text(self) -> bytes:
        return "".join(
            f"{name}\n{self.fields[name]}\n" for name in _SIGNED_FIELDS[self.fields["Type"]]
        ).encode()

    def sealed(self, signature: str) -> bytes:
        fields = {
            **self.fields,
            "SignatureVersion": str(self.signature_version),
            "Signature": signature,
            "SigningCertURL": self.certificate_url,
        }
        lines = (f'  "{name}" : {json.dumps(value)}' for name, value in fields.items())
        return ("{\n" + ",\n".join(lines) + "\n}").encode()


class Topic:
    """Writes envelopes and signs them."""

    def __init__(self, settings: SandboxSettings, key: SigningKey) -> None:
        self._settings = settings
        self._key = key
        self._host = f"https://sns.{settings.region}.amazonaws.com"
        subscription = quote(f"{settings.topic_arn}:sandbox", safe="")
        self._unsubscribe_url = f"{self._host}/?Action=Unsubscribe&SubscriptionArn={subscription}"

    def notification(self, event: Event, now: float) -> Envelope:
        return self._envelope(
            {
                "Type": NOTIFICATION,
                "MessageId": event.sns_id,
                "TopicArn": self._settings.topic_arn,
                "Subject": "Amazon SES Email Event Notification",
                "Message": json.dumps(event_body(event, self._settings, now), ensure_ascii=False),
                "Timestamp": iso(now),
                "UnsubscribeURL": self._unsubscribe_url,
            }
        )

    def confirmation(self, token: str, now: float) -> Envelope:
        arn = self._settings.topic_arn
        return self._envelope(
            {
                "Type": CONFIRMATION,
                "MessageId": str(uuid.uuid4()),
                "Token": token,
                "TopicArn": arn,
                "Message": f"You have chosen to subscribe to the topic {arn}.\n"
                "To confirm the subscription, visit the SubscribeURL included in this message.",
                "SubscribeURL": f"{self._host}/?Action=ConfirmSubscription&TopicArn={arn}&Token={token}",
                "Timestamp": iso(now),
            }
        )

    def _envelope(self, fields: dict[str, str]) -> Envelope:
        return Envelope(fields, self._settings.signature_version, self._key.url)

    def signatures(self, texts: list[bytes]) -> list[str]:
        """RSA takes a quarter of a millisecond for each: meant for a thread, which it leaves to others."""
        return [self._key.sign(text, self._settings.signature_version) for text in texts]


def sns_headers(settings: SandboxSettings, message_type: str, message_id: str) -> list[tuple[str, str]]:
    """The headers of an SNS post. Its body is JSON, but SNS calls it plain text."""
    headers = [
        ("x-amz-sns-message-type", message_type),
        ("x-amz-sns-message-id", message_id),
        ("x-amz-sns-topic-arn", settings.topic_arn),
        ("Content-Type", "text/plain; charset=UTF-8"),
        ("User-Agent", "Amazon Simple Notification Service Agent"),
    ]
    if message_type == NOTIFICATION:
        headers.append(("x-amz-sns-subscription-arn", f"{settings.topic_arn}:sandbox"))
    return headers


class Subscription:
    """Who gets the notifications, and whether he has said that he wants them."""

    def __init__(self, settings: SandboxSettings, state: WorldState) -> None:
        self._settings = settings
        self._state = state

    @property
    def url(self) -> str:
        return self._state.events_url

    @property
    def token(self) -> str:
        return self._state.token

    @property
    def confirmed(self) -> bool:
        return self._state.confirmed

    @property
    def open(self) -> bool:
        waits = self._settings.subscribe and self._settings.confirm_required
        return bool(self.url) and (self.confirmed or not waits)

    def request(self, url: str) -> None:
        """Begin anew: a fresh token, nothing confirmed. A confirmed subscription of the same URL stays."""
        if url == self.url and self.confirmed:
            return
        self._state.save(events_url=url, token=secrets.token_hex(32), confirmed=False)

    def confirm(self, topic_arn: str, token: str) -> str:
        if topic_arn != self._settings.topic_arn:
            raise ServiceRefusal(404, "NotFound", "Topic does not exist")
        if not self.token or not secrets.compare_digest(token.encode(), self.token.encode()):
            raise ServiceRefusal(400, "InvalidParameter", "Invalid parameter: Token")
        self._state.save(confirmed=True)
        return f"{topic_arn}:sandbox"


def answer_sns(request: Request, subscription: Subscription, settings: SandboxSettings, now: float) -> Reply:
    """The SNS query API; it knows ConfirmSubscription only. Raises ServiceRefusal."""
    form = {name: values[-1] for name, values in parse_qs(request.body.decode("utf-8", "replace")).items()}
    action = form.get("Action", "")
    # SNS confirms for anybody who has the token, unless the subscription shall be authenticated.
    if "authorization" in request.headers or form.get("AuthenticateOnUnsubscribe") == "true":
        check_signature(request, "sns", settings, now)
    if action != "ConfirmSubscription":
        raise ServiceRefusal(400, "InvalidAction", f"This world's SNS cannot {action or 'do nothing'}.")
    arn = subscription.confirm(form.get("TopicArn", ""), form.get("Token", ""))
    return _xml_result("ConfirmSubscription", {"SubscriptionArn": arn})


def _xml_result(action: str, values: dict[str, Any]) -> Reply:
    inner = "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in values.items())
    body = (
        f'<{action}Response xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><{action}Result>{inner}'
        f"</{action}Result><ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata>"
        f"</{action}Response>"
    )
    return Reply(body=body.encode(), content_type="text/xml")
