"""Reports that are made for programs: delivery status (RFC 3464) and complaints (RFC 5965)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sendonce.domain.engine.mailbox.addresses import first_address
from sendonce.domain.engine.mailbox.causes import Diagnosis, diagnose
from sendonce.domain.engine.mailbox.mime import Headers, Mail, read_headers

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_COMMENT = re.compile(r"\(([^()]{1,300})\)")
_MOST_GROUPS = 100
_STATUS_PARTS = ("message/delivery-status", "message/global-delivery-status")
_FEEDBACK = "message/feedback-report"
# What RFC 5965 §3.5 and RFC 6650 call a complaint. "not-spam" is the opposite; "auth-failure" is about DNS.
_COMPLAINTS = frozenset({"abuse", "fraud", "virus", "other", "miscategorized", "complaint", ""})


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """What a report says of one recipient. ``action`` is failed, delayed, delivered, relayed or expanded."""

    action: str
    recipient: str | None
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class Feedback:
    kind: str
    recipient: str | None

    @property
    def is_complaint(self) -> bool:
        return self.kind in _COMPLAINTS


def delivery_status(mail: Mail) -> DeliveryStatus | None:
    """The first recipient whose letter failed; else the first that is told of."""
    told = list(_recipients(mail))
    return next((each for each in told if each.action == "failed"), told[0] if told else None)


def feedback(mail: Mail) -> Feedback | None:
    for part in mail.parts_of(_FEEDBACK):
        fields = read_headers(part.text.strip("\n").encode())
        named = (fields.get("original-rcpt-to"), fields.get("removal-recipient"), _to_of(mail.returned))
        recipient = next((found for text in named if (found := first_address(text))), None)
        return Feedback(fields.get("feedback-type").strip().lower(), recipient)
    return _feedback_of_outlook(mail)


def _feedback_of_outlook(mail: Mail) -> Feedback | None:
    """Outlook.com's junk reporting gives the letter back inside a plain one, with a header of its own."""
    returned = read_headers(mail.returned.encode())
    told = returned.get("x-hmxmroriginalrecipient") or mail.headers.get("x-hmxmroriginalrecipient")
    return Feedback("abuse", first_address(told)) if told else None


def _recipients(mail: Mail) -> Iterator[DeliveryStatus]:
    for part in mail.parts_of(*_STATUS_PARTS):
        groups = [
            read_headers(text.encode()) for text in _BLANK_LINE.split(part.text.strip("\n"))[:_MOST_GROUPS]
        ]
        for group in groups:
            if "action" in group or "status" in group or "final-recipient" in group:
                yield _status(group, mail)


def _status(group: Headers, mail: Mail) -> DeliveryStatus:
    # What was written on the envelope comes first: behind an alias the final one is another address.
    original = _from_xtext(group.get("original-recipient"))
    named = (original, group.get("final-recipient"), group.get("x-actual-recipient"))
    recipient = next((found for text in named if (found := first_address(_bare(text)))), None)
    status = group.get("status")
    said = [
        *map(_bare, group.all("diagnostic-code")),
        group.get("x-supplementary-info"),
        *_COMMENT.findall(status),
    ]
    words = " ".join(filter(None, said)) or mail.text[:4000]  # some say why only in the words for people
    return DeliveryStatus(_action(group, status), recipient, diagnose(words, status, recipient))


def _action(group: Headers, status: str) -> str:
    """Not everybody keeps to the five words of RFC 3464: "failure", "error" and "expired" are seen too."""
    told = group.get("action").partition(" ")[0].lower()
    if not told:
        return "delayed" if status.startswith("4") else "failed"
    return told if told in ("delayed", "delivered", "relayed", "expanded") else "failed"


def _bare(value: str) -> str:
    """Without its type: ``rfc822; user@example.com``, ``smtp; 550 …``."""
    kind, semicolon, rest = value.partition(";")
    return rest.strip() if semicolon and re.fullmatch(r"[A-Za-z0-9-]{1,40}", kind.strip()) else value.strip()


def _from_xtext(value: str) -> str:
    """RFC 3461 §4 writes "+" and "=" of the envelope's address by their numbers. Not every server does."""
    return value.replace("+2B", "+").replace("+3D", "=")


def _to_of(returned: str) -> str:
    return read_headers(returned.split("\n\n", 1)[0].encode()).get("to")
