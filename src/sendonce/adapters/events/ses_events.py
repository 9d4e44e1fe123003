"""SES events and notifications, put into the words of the domain.

SES publishes the same facts in two shapes: configuration-set events (``eventType``; with our tags, so
they name the job and the attempt) and notifications of an identity (``notificationType``; no tags).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sendonce.domain.engine.events import (
    ArrivingEvent,
    BounceType,
    DeliveryEvent,
    EventKind,
    UnreadableEvent,
)
from sendonce.domain.engine.strict_json import is_plain, storable, strict_object
from sendonce.errors import BadInput

MAX_MESSAGE_CHARS = 256 * 1024  # SNS carries no more
_MAX_RECIPIENTS = 50  # SES takes no more in one message
_MAX_ADDRESS = 320


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where an event keeps its particulars."""

    kind: EventKind
    part: str  # the object named after the event
    recipients: str | None = None  # a list in it: addresses, or objects with emailAddress
    code: str | None = None
    reason: str | None = None


_SHAPES = {
    "Send": _Shape(EventKind.SENT, "send"),
    "Delivery": _Shape(EventKind.DELIVERED, "delivery", "recipients", reason="smtpResponse"),
    "Bounce": _Shape(EventKind.BOUNCE, "bounce", "bouncedRecipients"),
    "Complaint": _Shape(
        EventKind.COMPLAINT, "complaint", "complainedRecipients", code="complaintFeedbackType"
    ),
    "DeliveryDelay": _Shape(EventKind.DEFERRED, "deliveryDelay", "delayedRecipients", code="delayType"),
    "Reject": _Shape(EventKind.REJECT, "reject", reason="reason"),
    "Rendering Failure": _Shape(EventKind.REJECT, "failure", reason="errorMessage"),
}

# Opens and clicks are not tracked, on purpose; the last one greets a new topic.
_OF_NO_INTEREST = frozenset({"Open", "Click", "Subscription", "AmazonSnsSubscriptionSucceeded"})

# What SES writes to a topic, in plain words, when a configuration set begins to publish there.
_GREETING = "Successfully validated SNS topic"

_BOUNCE_TYPES = {"Permanent": BounceType.PERMANENT, "Transient": BounceType.TRANSIENT}

_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
_ATTEMPT = re.compile(r"[0-9]{1,9}")


def read_notification(message: str, event_id: str, source: str) -> DeliveryEvent | UnreadableEvent | None:
    """What a genuine SNS message of the topic ``source`` says; None for what is none of our business."""
    try:
        return parse_ses_event(message, event_id)
    except BadInput as exc:
        return UnreadableEvent(event_id, source, str(exc), message.encode("utf-8", "surrogatepass"))


def parse_ses_event(message: str, event_id: str) -> DeliveryEvent | None:
    """The event in an SNS message; None for what is none of our business. Raises BadInput."""
    if message.startswith(_GREETING):
        return None
    if len(message) > MAX_MESSAGE_CHARS:
        raise BadInput(f"The SES event has {len(message)} characters; {MAX_MESSAGE_CHARS} are the most.")
    raw = strict_object(message, "The SES event")
    name = _name_of(raw)
    if name in _OF_NO_INTEREST:
        return None
    shape = _SHAPES.get(name)
    if shape is None:
        raise BadInput(f"The SES event has the unknown type {name[:60]!r}.")
    return _event(raw, shape, event_id, message if is_plain(message) else json.dumps(raw))


def _event(raw: dict[str, Any], shape: _Shape, event_id: str, raw_text: str) -> ArrivingEvent:
    mail, part = _object(raw, "mail"), _object(raw, shape.part)
    tags = _object(mail, "tags")
    attempt = _tag(tags, "attempt", _ATTEMPT)
    destinations = _recipients(mail, "destination")
    recipients = _recipients(part, shape.recipients) or destinations
    code, reason = _explanation(part, shape)
    is_bounce = shape.kind is EventKind.BOUNCE
    return ArrivingEvent(
        event_id=event_id,
        natural_key=_natural_key(raw, shape.kind, mail, part, recipients, event_id),
        kind=shape.kind,
        occurred_at=_time(part, mail),
        message_id=_text(mail, "messageId", 255),
        job_id=_tag(tags, "job", _TAG),
        attempt=int(attempt) if attempt else None,
        recipients=recipients,
        bounce_type=_BOUNCE_TYPES.get(str(part.get("bounceType")), BounceType.UNDETERMINED)
        if is_bounce
        else None,
        bounce_subtype=_text(part, "bounceSubType", 100) if is_bounce else None,
        code=code,
        reason=reason,
        canary=_tag(tags, "canary", _TAG),
        raw=raw,
        raw_text=raw_text,
        destinations=destinations,
    )


def _natural_key(
    raw: dict[str, Any],
    kind: EventKind,
    mail: dict[str, Any],
    part: dict[str, Any],
    recipients: tuple[str, ...],
    event_id: str,
) -> str:
    """Equal for copies of one fact, whatever SNS message brings them.

    An identity's notification is another fact than the event of the same bounce: it has no tags, and
    must not make the tagged one, which can settle a doubt, look like a copy.
    """
    channel = "event" if "eventType" in raw else "notification"
    feedback_id, message_id = _text(part, "feedbackId", 255), _text(mail, "messageId", 255)
    if feedback_id:
        return f"ses:{channel}:{kind}:{feedback_id}"
    if not message_id:
        return f"ses:{channel}:{kind}:sns:{event_id}"
    when = _text(part, "timestamp", 64) or _text(mail, "timestamp", 64)
    whom = hashlib.sha256("\n".join(recipients).encode()).hexdigest()[:16]
    return f"ses:{channel}:{kind}:{message_id}:{when}:{whom}"


def _name_of(raw: dict[str, Any]) -> str:
    name = raw.get("eventType", raw.get("notificationType"))
    if not isinstance(name, str):
        raise BadInput("The SES event has neither an eventType nor a notificationType.")
    return name


def _explanation(part: dict[str, Any], shape: _Shape) -> tuple[str | None, str | None]:
    """A code and a reason: the event's own, or what the mail server said of the first recipient."""
    code = _text(part, shape.code, 100) if shape.code else None
    reason = _text(part, shape.reason, 500) if shape.reason else None
    for recipient in _list(part, shape.recipients):
        if isinstance(recipient, dict):
            code = code or _text(recipient, "status", 100)
            reason = reason or _text(recipient, "diagnosticCode", 500)
    return code, reason


def _recipients(part: dict[str, Any], name: str | None) -> tuple[str, ...]:
    addresses: list[str] = []
    for item in _list(part, name):
        address = item.get("emailAddress") if isinstance(item, dict) else item
        if isinstance(address, str) and (bare := _bare_address(address)):
            addresses.append(bare)
    return tuple(addresses)


def _bare_address(address: str) -> str | None:
    """``Name <a@b>`` is how SES echoes a destination that was given so."""
    address = address.strip()
    if address.endswith(">") and "<" in address:
        address = address[address.rindex("<") + 1 : -1]
    good = "@" in address and len(address) <= _MAX_ADDRESS and address.isprintable()
    return address if good else None


def _time(part: dict[str, Any], mail: dict[str, Any]) -> datetime:
    """The event's own time; Send, Reject and Rendering Failure have only that of the mail."""
    text = _text(part, "timestamp", 64) or _text(mail, "timestamp", 64)
    if text is None:
        raise BadInput("The SES event has no timestamp.")
    try:
        when = datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise BadInput(f"The SES event has the timestamp {text!r}, which is no date.") from exc


def _tag(tags: dict[str, Any], name: str, allowed: re.Pattern[str]) -> str | None:
    values = tags.get(name)  # SES gives each tag as a list of values
    value = values[0] if isinstance(values, list) and values else None
    return value if isinstance(value, str) and allowed.fullmatch(value) else None


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _list(fields: dict[str, Any], name: str | None) -> list[Any]:
    value = fields.get(name) if name else None
    return value[:_MAX_RECIPIENTS] if isinstance(value, list) else []


def _text(fields: dict[str, Any], name: str, limit: int) -> str | None:
    """One line of text, cut to ``limit``; None where there is none."""
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        return None
    line = value[:limit]
    if not line.isprintable():  # half of a surrogate pair is not, either
        line = storable("".join([char if char.isprintable() else " " for char in line]))
    return line.strip() or None
