"""A letter as SMTP sees it: the lines of its envelope, its body on the wire, and what cannot go at all."""

from __future__ import annotations

import re

from sendonce.adapters.transports.smtp_replies import Features
from sendonce.domain.engine.outcomes import Refused
from sendonce.domain.engine.parcels import Parcel

# A line break in an address would be a command of its own, an angle bracket a parameter.
_UNSAFE_ADDRESS = re.compile(r"[\x00-\x1f\x7f<>]").search
# Three times as fast over a letter as the "in" of bytes.
_LEADING_DOT = re.compile(rb"\n\.")


def local_refusal(parcel: Parcel, features: Features) -> Refused | None:
    """What the server would refuse (RFC 1870, RFC 6531) or must never see."""
    if features.max_size is not None and len(parcel.content) > features.max_size:
        reason = f"the letter has {len(parcel.content)} bytes, the server takes at most {features.max_size}"
        return Refused("552", reason)
    addresses = parcel.sender + parcel.recipient
    if _UNSAFE_ADDRESS(addresses):
        return Refused("553", "an address holds a control character or an angle bracket")
    if not addresses.isascii() and not features.smtputf8:
        return Refused("553", "an address is not ASCII, and the server does not offer SMTPUTF8")
    return None


def speaks_ascii(parcel: Parcel) -> bool:
    """Whether both addresses are plain; others need SMTPUTF8 as a parameter of MAIL."""
    return parcel.sender.isascii() and parcel.recipient.isascii()


def envelope_lines(parcel: Parcel) -> tuple[bytes, bytes]:
    """MAIL and RCPT. The content is 7-bit, so there is no BODY parameter."""
    utf8 = "" if speaks_ascii(parcel) else " SMTPUTF8"
    return f"MAIL FROM:<{parcel.sender}>{utf8}\r\n".encode(), f"RCPT TO:<{parcel.recipient}>\r\n".encode()


def body_lines(parcel: Parcel) -> tuple[bytes, bytes]:
    """The content as it goes over the wire, and the end of data (RFC 5321 §4.5.2)."""
    content = parcel.content
    if not parcel.dotless and (_LEADING_DOT.search(content) or content.startswith(b".")):
        content = (b"\n" + content).replace(b"\n.", b"\n..")[1:]
    return content, b".\r\n" if content.endswith(b"\r\n") else b"\r\n.\r\n"
