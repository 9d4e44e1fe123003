"""What a SendEmail request asks for: the letter, its envelope, its tags."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any

from sendonce.sandbox.refusals import ServiceRefusal, bad_request, rejected

MAX_RECIPIENTS = 50
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
_FOLD = re.compile(r"\r?\n(?=[ \t])")
# RFC 5322 section 3.6 allows each of these once, and SES refuses a letter that repeats one.
_SINGLE = frozenset({"from", "sender", "reply-to", "to", "cc", "bcc", "message-id", "subject", "date"})


@dataclass(slots=True)
class Letter:
    sender: str
    recipients: tuple[str, ...]
    headers: list[tuple[str, str]]
    tags: dict[str, str]
    configuration_set: str | None
    content: bytes

    def header(self, name: str) -> str | None:
        name = name.lower()
        return next((value for header, value in self.headers if header.lower() == name), None)

    def senders(self) -> tuple[str, ...]:
        """Every address that must be verified: the envelope's and those of the From header."""
        return tuple(dict.fromkeys((self.sender, *addresses_in([self.header("From") or ""]))))


def read_letter(body: bytes, max_bytes: int) -> Letter:
    """The letter of a SendEmail request; raises the refusal that SES would answer with."""
    request = _object(_parse(body), "request")
    content = _object(request.get("Content"), "Content")
    destination = _object(request.get("Destination") or {}, "Destination")
    envelope = [
        address
        for field in ("ToAddresses", "CcAddresses", "BccAddresses")
        for address in _strings(destination.get(field), field)
    ]
    sender = _string(request.get("FromEmailAddress") or "", "FromEmailAddress")
    if "Raw" in content:
        raw = _raw_bytes(content["Raw"])
    elif "Simple" in content:
        raw = _compose(sender, destination, request, _object(content["Simple"], "Simple"))
    else:
        raise bad_request("Content must be Raw or Simple; this world keeps no templates.")
    if len(raw) > max_bytes:
        raise rejected(f"Message length is more than {max_bytes} bytes long: '{len(raw)}'.")
    return _letter(raw, sender, envelope, request)


def _letter(raw: bytes, sender: str, envelope: list[str], request: dict[str, Any]) -> Letter:
    headers = read_headers(raw)
    _check_headers(headers)
    found = {name.lower(): value for name, value in headers}
    if not envelope:
        envelope = [found[name] for name in ("to", "cc", "bcc") if name in found]
    senders = addresses_in([sender or found.get("from", "")])
    if not senders:
        raise bad_request("Missing required header 'From'.")
    recipients = tuple(addresses_in(envelope))
    if not recipients:
        raise bad_request("Missing required parameter: 'Destination'.")
    if len(recipients) > MAX_RECIPIENTS:
        raise rejected(f"Recipient count exceeds {MAX_RECIPIENTS}.")
    for address in (*senders, *recipients):
        _check_address(address)
    configuration_set = request.get("ConfigurationSetName") or found.get("x-ses-configuration-set")
    return Letter(
        sender=senders[0],
        recipients=recipients,
        headers=headers,
        tags=_tags(request.get("EmailTags")),
        configuration_set=_string(configuration_set, "ConfigurationSetName") if configuration_set else None,
        content=raw,
    )


def read_headers(raw: bytes) -> list[tuple[str, str]]:
    end = raw.find(b"\r\n\r\n")
    if end < 0:
        end = raw.find(b"\n\n")
    block = raw if end < 0 else raw[:end]
    text = _FOLD.sub("", block.decode("utf-8", "replace"))
    pairs = (line.partition(":") for line in text.splitlines() if line)
    return [(name.strip(), value.strip()) for name, colon, value in pairs if colon]


def readable(value: str) -> str:
    """A header with its RFC 2047 words decoded, or as it is where they are broken."""
    if "=?" not in value:
        return value
    try:
        return str(make_header(decode_header(value)))
    except (ValueError, LookupError):
        return value


def addresses_in(values: list[str]) -> list[str]:
    if all("<" not in value and "," not in value for value in values):
        return [value.strip() for value in values if value.strip()]
    return [address for _name, address in getaddresses(values) if address]


def _check_headers(headers: list[tuple[str, str]]) -> None:
    seen: set[str] = set()
    for name, _value in headers:
        lowered = name.lower()
        if lowered in _SINGLE and lowered in seen:
            raise bad_request(f"Duplicate header '{name}'.")
        seen.add(lowered)


def _check_address(address: str) -> None:
    local, at, domain = address.rpartition("@")
    if not at or not local or not domain:
        raise bad_request(f"Missing final '@domain': '{address}'.")
    if not address.isascii() or not address.isprintable() or " " in domain:
        # SES has no SMTPUTF8; a domain in other letters must come in Punycode.
        raise bad_request(f"Local address or domain contains control, whitespace or non-ASCII: '{address}'.")


def _tags(value: Any) -> dict[str, str]:
    tags: dict[str, str] = {}
    for item in value if isinstance(value, list) else []:
        pair = _object(item, "EmailTags")
        name, content = _string(pair.get("Name"), "Name"), _string(pair.get("Value"), "Value")
        for part, text in (("name", name), ("value", content)):
            if not _TAG.fullmatch(text):
                raise bad_request(
                    f"Invalid tag {part} <{text}>: only alphanumeric ASCII characters, '_', and '-' "
                    "are allowed, at most 256 of them."
                )
        if name in tags:
            raise bad_request(f"Duplicate tag name <{name}>.")
        tags[name] = content
    return tags


def _compose(
    sender: str, destination: dict[str, Any], request: dict[str, Any], simple: dict[str, Any]
) -> bytes:
    """The message that SES would write from a Simple request."""
    message = EmailMessage()
    body = _object(simple.get("Body"), "Body")
    headers = [("From", sender)]
    for field, name in (("ToAddresses", "To"), ("CcAddresses", "Cc")):
        headers.append((name, ", ".join(_strings(destination.get(field), field))))
    headers.append(("Reply-To", ", ".join(_strings(request.get("ReplyToAddresses"), "ReplyToAddresses"))))
    headers.append(("Subject", _data(simple.get("Subject"), "Subject")))
    for item in simple.get("Headers") or []:
        extra = _object(item, "Headers")
        headers.append((_string(extra.get("Name"), "Name"), _string(extra.get("Value"), "Value")))
    try:
        for name, value in headers:
            if value:
                message[name] = value
        if "Text" in body:
            message.set_content(_data(body["Text"], "Text"))
        if "Html" in body:
            html = _data(body["Html"], "Html")
            add = message.add_alternative if "Text" in body else message.set_content
            add(html, subtype="html")
        return message.as_bytes()
    except (ValueError, LookupError, AttributeError) as exc:
        raise bad_request(f"The letter cannot be written: {exc}") from exc


def _raw_bytes(value: Any) -> bytes:
    data = _string(_object(value, "Raw").get("Data"), "Data")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ServiceRefusal(400, "SerializationException", "Raw.Data is not base64.") from exc


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise ServiceRefusal(400, "SerializationException", "The request body is not JSON.") from exc


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise bad_request(f"{name} must be an object.")
    return value


def _string(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise bad_request(f"{name} must be a string.")
    return value


def _strings(value: Any, name: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise bad_request(f"{name} must be a list.")
    return [_string(item, name) for item in value]


def _data(value: Any, name: str) -> str:
    return _string(_object(value, name).get("Data"), name)
