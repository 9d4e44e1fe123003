"""SNS messages over HTTPS: is this really from SNS, and from a topic of ours?

The order of the checks is the defence. Nothing is parsed that does not name a topic of ours. Nothing is
fetched before the topic is known to be ours and the certificate's address is known, as a whole string, to be
the one that SNS uses in that topic's region. SubscribeURL is never opened; a subscription is confirmed by a
signed call of our own.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from sendonce.adapters.events.sns_certificates import (
    Certificates,
    fetch_certificate,
)
from sendonce.domain.engine.sns_messages import SnsMessage
from sendonce.domain.engine.strict_json import strict_object
from sendonce.errors import BadInput, CertificateUnknown, NotGenuine

MAX_BODY_BYTES = 256 * 1024
_CONTROL_MESSAGE_AGE = timedelta(hours=1)  # SNS retries over HTTPS for no longer

_TOPIC = re.compile(
    r"arn:(aws|aws-cn|aws-us-gov):sns:([a-z]{2}(?:-[a-z]+)+-[0-9]):[0-9]{12}:[A-Za-z0-9_-]{1,256}"
)
_TOPIC_FIELD = re.compile(rb'"TopicArn"\s{0,20}:\s{0,20}"((?:[^"\\]|\\.){0,300})')
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z")

# SHA1 is what topics use unless SignatureVersion=2 is set on them.
_HASHES: dict[str, type[hashes.HashAlgorithm]] = {"1": hashes.SHA1, "2": hashes.SHA256}

_SIGNED_FIELDS = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": (
        "Message",
        "MessageId",
        "SubscribeURL",
        "Timestamp",
        "Token",
        "TopicArn",
        "Type",
    ),
}
_SIGNED_FIELDS["UnsubscribeConfirmation"] = _SIGNED_FIELDS["SubscriptionConfirmation"]
_OPTIONAL = frozenset({"Subject"})


class SnsUnreadable(NotGenuine):
    """Not a message of SNS at all."""

    http_status = 400


class SnsVerifier:
    """Safe in many threads."""

    def __init__(
        self,
        allowed_topics: frozenset[str],
        pinned_certificate_file: Path | None = None,
        fetch: Callable[[str], bytes] = fetch_certificate,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._allowed_topics = allowed_topics
        self._topics_as_sent = tuple(topic.encode() for topic in allowed_topics)
        self._now = now
        self._certificates = Certificates(pinned_certificate_file, fetch)

    def screen(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Refuse what cannot be from a topic of ours. It costs next to nothing: nothing is parsed."""
        if any(name.lower() == "x-amz-sns-rawdelivery" for name in headers):
            raise NotGenuine("Raw message delivery carries no signature. Turn it off on the subscription.")
        if len(body) > MAX_BODY_BYTES:
            raise SnsUnreadable(f"The SNS message has {len(body)} bytes; {MAX_BODY_BYTES} are the most.")
        if any(topic in body for topic in self._topics_as_sent):
            return
        named = _TOPIC_FIELD.search(body)
        if named is None:
            raise SnsUnreadable("The message is not from SNS: it names no TopicArn.")
        topic = named[1].decode("utf-8", "replace")
        raise NotGenuine(f"The topic {topic!r} is not in SNS_ALLOWED_TOPIC_ARNS.")

    def verify(self, body: bytes, headers: Mapping[str, str]) -> SnsMessage:
        """The same as ``verify_now``, but waits for a certificate that has to be fetched."""
        try:
            return self.verify_now(body, headers)
        except CertificateUnknown as unknown:
            with suppress(TimeoutError):
                unknown.learning.result(unknown.patience)
        return self.verify_now(body, headers)

    def verify_now(self, body: bytes, headers: Mapping[str, str]) -> SnsMessage:
        """The message, or NotGenuine. Unavailable means that SNS should try again later.

        Raises CertificateUnknown where a certificate has to be fetched first; that has begun then.
        """
        self.screen(body, headers)
        fields = _envelope(body)
        kind = _text(fields, "Type")
        if kind not in _SIGNED_FIELDS:
            raise SnsUnreadable(f"The SNS message has the unknown Type {kind[:60]!r}.")
        topic = self._own_topic(fields)
        url = _certificate_url(fields, topic)
        algorithm, signature = _signature(fields)
        signed = _canonical(fields, kind)
        message = _message(fields, kind)
        key = self._valid_key(url)
        try:
            key.verify(signature, signed, PKCS1v15(), algorithm)
        except InvalidSignature as exc:
            raise NotGenuine("The SNS message has a wrong signature.") from exc
        if kind != "Notification" and self._now() - message.timestamp > _CONTROL_MESSAGE_AGE:
            raise NotGenuine(f"The SNS {kind} is of {message.timestamp.isoformat()}: too old to act upon.")
        return message

    def _own_topic(self, fields: dict[str, Any]) -> str:
        topic = _text(fields, "TopicArn")
        if topic not in self._allowed_topics:
            raise NotGenuine(f"The topic {topic[:300]!r} is not in SNS_ALLOWED_TOPIC_ARNS.")
        return topic

    def _valid_key(self, url: str) -> RSAPublicKey:
        certificate = self._certificates.get(url)
        first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if not first <= self._now() <= last:
            raise NotGenuine(
                f"The SNS certificate is valid from {first:%Y-%m-%d} to {last:%Y-%m-%d}, not now."
            )
        key = certificate.public_key()
        assert isinstance(key, RSAPublicKey)
        return key


def _envelope(body: bytes) -> dict[str, Any]:
    try:
        return strict_object(body, "The SNS message")
    except BadInput as exc:
        raise SnsUnreadable(str(exc)) from exc


def _certificate_url(fields: dict[str, Any], topic: str) -> str:
    """The whole string is matched: a parser may be tricked by ``\\@``, a port, a query or a line end."""
    parts = _TOPIC.fullmatch(topic)
    if parts is None:
        raise NotGenuine(f"The topic {topic[:300]!r} is not a topic ARN. Correct SNS_ALLOWED_TOPIC_ARNS.")
    host = f"sns.{parts[2]}.amazonaws.com" + (".cn" if parts[1] == "aws-cn" else "")
    url = _text(fields, "SigningCertURL")
    if not re.fullmatch(rf"https://{re.escape(host)}/SimpleNotificationService-[0-9a-f]{{32}}\.pem", url):
        raise NotGenuine(f"The signing certificate is said to be at {url[:200]!r}, which is not {host}'s.")
    return url


def _signature(fields: dict[str, Any]) -> tuple[hashes.HashAlgorithm, bytes]:
    version = _text(fields, "SignatureVersion")
    if version not in _HASHES:
        raise NotGenuine(f"The SNS message has SignatureVersion {version[:20]!r}; 1 and 2 are known.")
    try:
        signature = base64.b64decode(_text(fields, "Signature"), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise NotGenuine("The SNS message has a Signature that is not base64.") from exc
    return _HASHES[version](), signature


def _canonical(fields: dict[str, Any], kind: str) -> bytes:
    """What SNS signed: names and values in turn, each on a line, in the order of the names.

    Only Message may have line ends in it. Otherwise one signed text could be read in two ways: a
    MessageId that swallowed the Subject would pass as a new message.
    """
    lines: list[str] = []
    for name in _SIGNED_FIELDS[kind]:
        if name in _OPTIONAL and fields.get(name) is None:
            continue
        value = _text(fields, name)
        if name != "Message" and ("\n" in value or "\r" in value):
            raise SnsUnreadable(f"The SNS message has a line end in {name}.")
        lines += (name, value)
    return "".join([f"{line}\n" for line in lines]).encode("utf-8")


def _message(fields: dict[str, Any], kind: str) -> SnsMessage:
    timestamp = _text(fields, "Timestamp")
    try:
        if not _TIMESTAMP.fullmatch(timestamp):
            raise ValueError("not the form that SNS uses")
        when = datetime.fromisoformat(timestamp)
    except ValueError as exc:
        raise SnsUnreadable(f"The SNS message has the Timestamp {timestamp[:60]!r}: {exc}.") from exc
    is_control = kind != "Notification"
    return SnsMessage(
        type=kind,
        message_id=_text(fields, "MessageId"),
        topic_arn=_text(fields, "TopicArn"),
        timestamp=when,
        message=_text(fields, "Message"),
        token=_text(fields, "Token") if is_control else None,
        subscribe_url=_text(fields, "SubscribeURL") if is_control else None,
    )


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise SnsUnreadable(f"The SNS message has no {name}, or one that is not text.")
    return value
