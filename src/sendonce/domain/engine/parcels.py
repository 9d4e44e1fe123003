"""A parcel is a message job made ready for the wire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True, eq=False)
class Parcel:
    """``content`` is the whole RFC 5322 message with CRLF line ends, not yet dot-stuffed.

    ``claimed_at`` is the store's time of the claim; the SES request is signed with it, so that a
    zombie's late request is refused by AWS.
    ``dotless``: whoever built it warrants that no line begins with a dot, so SMTP need not look for one.
    ``taken`` is the boot-time clock when the claim began (the one-second promise counts from it).
    """

    job_id: str
    attempt: int
    sender: str  # envelope sender
    recipient: str  # envelope recipient, ASCII domain
    content: bytes
    claimed_at: datetime
    taken: float
    tries: int = 0
    dotless: bool = False
    dispatch_id: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """What the provider allows this account. None means: it does not say."""

    max_rate: float | None = None
    left_today: int | None = None
    sending_enabled: bool = True
    sent_last_day: int | None = None
