"""What becomes of a letter after SES took it, told in SES's own words.

A recipient's fate is decided by the address: the mailbox simulator's (``bounce@simulator.amazonses.com``),
a word after the last plus of any address (``anna+bounce@example.org``), or else the shares of the
settings, by a hash of the seed and the address, so that a rerun agrees.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sendonce.sandbox.acceptance import Acceptance
from sendonce.sandbox.settings import SandboxSettings

SIMULATOR = "simulator.amazonses.com"
_NAMESPACE = uuid.UUID("6f0c6e0e-55b1-4b3c-9d6e-2f1c8a6d7b10")


class Kind(StrEnum):
    SEND = "Send"
    DELIVERY = "Delivery"
    BOUNCE = "Bounce"
    COMPLAINT = "Complaint"
    DELAY = "DeliveryDelay"
    REJECT = "Reject"


class Fate(StrEnum):
    """The value is the word that picks it after a plus."""

    SUCCESS = "success"
    BOUNCE = "bounce"
    SOFT_BOUNCE = "softbounce"
    COMPLAINT = "complaint"
    OUT_OF_OFFICE = "ooto"
    SUPPRESSED = "suppressionlist"
    DELAY = "delay"
    REJECT = "reject"


# What SES tells about a recipient after Send. An automatic reply comes as a transient bounce of a
# letter that was delivered.
STORY: dict[Fate, tuple[Kind, ...]] = {
    Fate.SUCCESS: (Kind.DELIVERY,),
    Fate.BOUNCE: (Kind.BOUNCE,),
    Fate.SOFT_BOUNCE: (Kind.BOUNCE,),
    Fate.COMPLAINT: (Kind.DELIVERY, Kind.COMPLAINT),
    Fate.OUT_OF_OFFICE: (Kind.DELIVERY, Kind.BOUNCE),
    Fate.SUPPRESSED: (Kind.BOUNCE,),
    Fate.DELAY: (Kind.DELAY, Kind.DELIVERY),
    Fate.REJECT: (Kind.REJECT,),
}

_BOUNCES: dict[Fate, tuple[str, str, str, str]] = {
    Fate.BOUNCE: ("Permanent", "General", "5.1.1", "smtp; 550 5.1.1 user unknown"),
    Fate.SOFT_BOUNCE: ("Transient", "MailboxFull", "4.2.2", "smtp; 452 4.2.2 mailbox full"),
    Fate.OUT_OF_OFFICE: ("Transient", "General", "", ""),
    Fate.SUPPRESSED: (
        "Permanent",
        "Suppressed",
        "5.1.1",
        "Amazon SES has suppressed sending to this address because it has a recent history of bouncing.",
    ),
}


def is_simulator(address: str) -> bool:
    return address.lower().endswith("@" + SIMULATOR)


def fate_of(address: str, settings: SandboxSettings, seed: int) -> Fate:
    local, _, domain = address.lower().rpartition("@")
    word = (
        local.partition("+")[0] if domain == SIMULATOR else local.rpartition("+")[2] if "+" in local else ""
    )
    if word in tuple(Fate):
        return Fate(word)
    digest = hashlib.blake2b(f"{seed}:{address.lower()}".encode(), digest_size=8).digest()
    throw = int.from_bytes(digest, "big") / 2**64
    for fate, share in (
        (Fate.REJECT, settings.reject_share),
        (Fate.BOUNCE, settings.bounce_share),
        (Fate.COMPLAINT, settings.complaint_share),
        (Fate.DELAY, settings.delay_share),
    ):
        throw -= share
        if throw < 0:
            return fate
    return Fate.SUCCESS


def _is_disliked(sender: str, settings: SandboxSettings) -> bool:
    return any(address in sender.lower() for address in settings.disliked)


@dataclass(slots=True)
class Event:
    """One thing to tell. ``edition`` sets apart the copies that SES itself publishes twice."""

    acceptance: Acceptance
    kind: Kind
    recipient: str | None = None  # None: the whole letter
    fate: Fate = Fate.SUCCESS
    edition: int = 1
    copies: int = 1
    attempts: int = 0
    envelope: bytes = b""

    @property
    def sns_id(self) -> str:
        """The same in every run on the same log, so that a restart knows what was delivered."""
        name = f"{self.acceptance.message_id}/{self.kind}/{self.recipient}/{self.edition}"
        return str(uuid.uuid5(_NAMESPACE, name))


def events_of(acceptance: Acceptance, settings: SandboxSettings, seed: int) -> Iterator[Event]:
    """Everything to tell about a letter. Without a configuration set SES publishes nothing."""
    if acceptance.configuration_set is None:
        return
    yield Event(acceptance, Kind.SEND)
    for recipient in acceptance.recipients:
        fate = fate_of(recipient, settings, seed)
        if fate is Fate.SUCCESS and _is_disliked(acceptance.sender, settings):
            fate = Fate.COMPLAINT
        for kind in STORY[fate]:
            yield Event(acceptance, kind, recipient, fate)


def event_body(event: Event, settings: SandboxSettings, now: float) -> dict[str, Any]:
    """The JSON that SES publishes to a configuration set's destination."""
    key, detail = _DETAILS[event.kind]
    body = {"eventType": event.kind.value, "mail": _mail(event.acceptance, settings)}
    body[key] = detail(event, settings, now)
    return body


def iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _mail(acceptance: Acceptance, settings: SandboxSettings) -> dict[str, Any]:
    identity = acceptance.sender
    if identity not in settings.identities:
        identity = identity.rpartition("@")[2]
    return {
        "timestamp": iso(acceptance.t),
        "source": acceptance.sender,
        "sourceArn": f"arn:aws:ses:{settings.region}:{settings.account_id}:identity/{identity}",
        "sendingAccountId": settings.account_id,
        "messageId": acceptance.message_id,
        "destination": list(acceptance.recipients),
        "headersTruncated": not acceptance.headers,
        "headers": [{"name": name, "value": value} for name, value in _headers(acceptance)],
        "commonHeaders": _common_headers(acceptance),
        "tags": {
            "ses:operation": ["SendEmail"],
            "ses:configuration-set": [acceptance.configuration_set],
            "ses:source-ip": ["127.0.0.1"],
            "ses:from-domain": [acceptance.sender.rpartition("@")[2]],
            "ses:caller-identity": ["sandbox"],
            **{name: [value] for name, value in acceptance.tags.items()},
        },
    }


def _headers(acceptance: Acceptance) -> list[tuple[str, str]]:
    if acceptance.headers:
        return acceptance.headers
    known = (
        ("From", acceptance.sender),
        ("To", ", ".join(acceptance.recipients)),
        ("Subject", acceptance.subject),
        ("Message-ID", acceptance.message_id_header),
    )
    return [(name, value) for name, value in known if value is not None]


def _common_headers(acceptance: Acceptance) -> dict[str, Any]:
    found = {name.lower(): value for name, value in _headers(acceptance)}
    return {
        "from": [found.get("from", acceptance.sender)],
        "to": [found["to"]] if "to" in found else [],
        # SES puts its own Message-ID on the letter and tells that one here.
        "messageId": acceptance.message_id,
        "subject": acceptance.subject,
    }


def _delivery(event: Event, settings: SandboxSettings, now: float) -> dict[str, Any]:
    return {
        "timestamp": iso(now),
        "processingTimeMillis": max(1, round((now - event.acceptance.t) * 1000)),
        "recipients": [event.recipient],
        "smtpResponse": "250 2.6.0 Message received",
        "remoteMtaIp": "127.0.0.1",
        "reportingMTA": _mta(settings),
    }


def _bounce(event: Event, settings: SandboxSettings, now: float) -> dict[str, Any]:
    bounce_type, subtype, status, diagnosis = _BOUNCES[event.fate]
    recipient = {"emailAddress": event.recipient}
    if status:
        recipient |= {"action": "failed", "status": status, "diagnosticCode": diagnosis}
    return {
        "feedbackId": _feedback_id(event),
        "bounceType": bounce_type,
        "bounceSubType": subtype,
        "bouncedRecipients": [recipient],
        "timestamp": iso(now),
        "reportingMTA": f"dns; {_mta(settings)}",
    }


def _complaint(event: Event, settings: SandboxSettings, now: float) -> dict[str, Any]:  # noqa: ARG001
    return {
        "feedbackId": _feedback_id(event),
        "complaintSubType": None,
        "complainedRecipients": [{"emailAddress": event.recipient}],
        "timestamp": iso(now),
        "userAgent": "Amazon SES Mailbox Simulator",
        "complaintFeedbackType": "abuse",
        "arrivalDate": iso(now),
    }


def _delay(event: Event, settings: SandboxSettings, now: float) -> dict[str, Any]:
    return {
        "timestamp": iso(now),
        "delayType": "TransientCommunicationFailure",
        "expirationTime": iso(event.acceptance.t + 12 * 3600),
        "delayedRecipients": [
            {
                "emailAddress": event.recipient,
                "status": "4.4.1",
                "diagnosticCode": "smtp; 421 4.4.1 Unable to connect to remote host",
            }
        ],
        "reportingMTA": _mta(settings),
    }


def _mta(settings: SandboxSettings) -> str:
    return f"a8-1.smtp-out.{settings.region}.amazonses.com"


def _feedback_id(event: Event) -> str:
    """One a fact: the copies of an event share it, which makes it a key to tell them by."""
    name = f"{event.acceptance.message_id}/{event.kind}/{event.recipient}"
    return f"{event.acceptance.message_id.partition('-')[0]}-{uuid.uuid5(_NAMESPACE, name)}-000000"


_Detail = Callable[[Event, SandboxSettings, float], dict[str, Any]]
_DETAILS: dict[Kind, tuple[str, _Detail]] = {
    Kind.SEND: ("send", lambda _event, _settings, _now: {}),
    Kind.DELIVERY: ("delivery", _delivery),
    Kind.BOUNCE: ("bounce", _bounce),
    Kind.COMPLAINT: ("complaint", _complaint),
    Kind.DELAY: ("deliveryDelay", _delay),
    Kind.REJECT: ("reject", lambda _event, _settings, _now: {"reason": "Bad content"}),
}
