"""What a message in the sending mailbox is.

    a report for programs (complaint, delivery status) ─► a server's words ─► a command to unsubscribe
      ─► an automatic reply ─► a wish in words ─► a reply ─► other

Anybody can write any of these. Whoever acts on one asks first whether it names a letter of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sendonce.domain.engine.mailbox.addresses import first_address
from sendonce.domain.engine.mailbox.automatic import is_automatic, says_automatic
from sendonce.domain.engine.mailbox.causes import Bounce, Cause, Diagnosis, readable
from sendonce.domain.engine.mailbox.mime import Mail
from sendonce.domain.engine.mailbox.notices import from_daemon, read_notice
from sendonce.domain.engine.mailbox.own_words import own_words
from sendonce.domain.engine.mailbox.replies import is_reply
from sendonce.domain.engine.mailbox.reports import DeliveryStatus, delivery_status, feedback
from sendonce.domain.engine.mailbox.wishes import is_command, wants_out


class MailKind(StrEnum):
    BOUNCE = "bounce"
    DELAY = "delay"
    REPLY = "reply"
    AUTO_REPLY = "auto_reply"
    OPT_OUT = "opt_out"
    COMPLAINT = "complaint"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Classified:
    """``recipient`` is whom it is about: who was not reached, who complained, who wrote.

    ``bounce``, ``code`` and ``cause`` tell of bounces and delays. ``reason`` is a line for people.
    """

    kind: MailKind
    recipient: str | None = None
    bounce: Bounce | None = None
    code: str | None = None
    reason: str | None = None
    cause: Cause | None = None


def classify(mail: Mail) -> Classified:
    return _report(mail) or _notice(mail) or _letter(mail)


def _report(mail: Mail) -> Classified | None:
    if (told := feedback(mail)) is not None:
        if told.kind == "opt-out":
            return Classified(MailKind.OPT_OUT, told.recipient, reason=told.kind)
        kind = MailKind.COMPLAINT if told.is_complaint else MailKind.OTHER
        return Classified(kind, told.recipient, reason=told.kind or None)
    # A person who forwards a bounce may send its parts along: then the whole is not a report.
    if mail.content_type != "multipart/report" and not from_daemon(mail):
        return None
    status = delivery_status(mail)
    if status is not None:
        return _delivery(status, mail)
    is_receipt = any(mail.parts_of("message/disposition-notification")) and read_notice(mail) is None
    return Classified(MailKind.OTHER, _author(mail), reason="a read receipt") if is_receipt else None


def _delivery(status: DeliveryStatus, mail: Mail) -> Classified:
    notice = read_notice(mail)
    recipient = status.recipient or (notice.recipient if notice else None)
    if status.action == "failed":
        return _came_back(recipient, status.diagnosis)
    if status.action == "delayed":
        return _waits(recipient, status.diagnosis)
    return Classified(MailKind.OTHER, recipient, reason=readable(status.action))


def _notice(mail: Mail) -> Classified | None:
    notice = read_notice(mail)
    if notice is None:
        return None
    if notice.delayed:
        return _waits(notice.recipient, notice.diagnosis)
    return _came_back(notice.recipient, notice.diagnosis)


def _came_back(recipient: str | None, said: Diagnosis) -> Classified:
    return Classified(MailKind.BOUNCE, recipient, said.bounce, said.code, said.reason or None, said.cause)


def _waits(recipient: str | None, said: Diagnosis) -> Classified:
    return Classified(MailKind.DELAY, recipient, None, said.code, said.reason or None, said.cause)


def _letter(mail: Mail) -> Classified:
    kind = _kind_of_letter(mail)
    shown = own_words(mail) or mail.headers.get("subject")
    return Classified(kind, _author(mail), reason=readable(shown) or None)


def _kind_of_letter(mail: Mail) -> MailKind:
    if is_command(mail) and not says_automatic(mail):
        return MailKind.OPT_OUT
    if is_automatic(mail):
        return MailKind.AUTO_REPLY
    if wants_out(mail):
        return MailKind.OPT_OUT
    return MailKind.REPLY if is_reply(mail) else MailKind.OTHER


def _author(mail: Mail) -> str | None:
    return first_address(mail.headers.get("from"))
