"""What comes back to a letter. A word after the last plus of the recipient's address picks it."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.utils import format_datetime

from sendonce.sandbox.mailbox.box import Message

_PLACE = "mx.sandbox.example"


def answers_to(letter: Message, recipient: str) -> list[bytes]:
    """``anna+bounce@…``: bounce, softbounce, delay, complaint, ooto, reply, optout. Others say nothing."""
    local = recipient.rpartition("@")[0]
    make = _BY_WORD.get(local.rpartition("+")[2].lower()) if "+" in local else None
    return [make(letter, recipient).replace("\n", "\r\n").encode()] if make else []


def _report(action: str, status: str, said: str) -> Callable[[Message, str], str]:
    def make(letter: Message, recipient: str) -> str:
        delayed = action == "delayed"
        subject = "Delayed Mail (still being retried)" if delayed else "Undelivered Mail Returned to Sender"
        return (
            f"{_head(letter, f'MAILER-DAEMON@{_PLACE}', subject)}Return-Path: <>\n"
            "Auto-Submitted: auto-replied\n"
            'Content-Type: multipart/report; report-type=delivery-status; boundary="=_report"\n\n'
            "--=_report\nContent-Type: text/plain; charset=utf-8\n\n"
            f"This is the mail system at host {_PLACE}.\n\n<{recipient}>: {said}\n\n"
            f"--=_report\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; {_PLACE}\n\n"
            f"Final-Recipient: rfc822; {recipient}\nAction: {action}\nStatus: {status}\n"
            f"Diagnostic-Code: smtp; {said}\n\n"
            f"--=_report\nContent-Type: text/rfc822-headers\n\n{_headers_of(letter)}\n\n--=_report--\n"
        )

    return make


def _complaint(letter: Message, recipient: str) -> str:
    return (
        f"{_head(letter, f'abuse@{_PLACE}', 'FW: a complaint')}"
        'Content-Type: multipart/report; report-type=feedback-report; boundary="=_arf"\n\n'
        "--=_arf\nContent-Type: text/plain\n\nThis is an abuse report.\n\n"
        "--=_arf\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nUser-Agent: sandbox/1\n"
        f"Version: 1\nOriginal-Rcpt-To: <{recipient}>\n\n"
        f"--=_arf\nContent-Type: message/rfc822\n\n{_headers_of(letter)}\n\n--=_arf--\n"
    )


def _answer(subject: str, text: str, headers: str = "") -> Callable[[Message, str], str]:
    def make(letter: Message, recipient: str) -> str:
        thread = letter.header("Message-ID")
        return (
            f"{_head(letter, recipient, subject)}In-Reply-To: {thread}\nReferences: {thread}\n{headers}"
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n"
            f"{text}\n\nOn Monday {letter.header('From')} wrote:\n> To unsubscribe, click here.\n"
        )

    return make


_BY_WORD: dict[str, Callable[[Message, str], str]] = {
    "bounce": _report("failed", "5.1.1", "550 5.1.1 No such user here"),
    "softbounce": _report("failed", "5.2.2", "552 5.2.2 Mailbox full"),
    "delay": _report("delayed", "4.4.1", "connect to mx: Connection timed out"),
    "complaint": _complaint,
    "ooto": _answer("Automatic reply", "I am out of the office.", "Auto-Submitted: auto-replied\n"),
    "reply": _answer("Re: your letter", "Thank you, please send us your prices."),
    "optout": _answer("Re: your letter", "Отпишите меня, пожалуйста."),
}


def _head(letter: Message, sender: str, subject: str) -> str:
    key = re.sub(r"[^A-Za-z0-9.-]", "", letter.header("Message-ID"))
    return (
        f"From: {sender}\nTo: {letter.header('From')}\nSubject: {subject}\n"
        f"Date: {format_datetime(letter.filed_at)}\nMessage-ID: <answer.{key}>\nMIME-Version: 1.0\n"
    )


def _headers_of(letter: Message) -> str:
    return letter.raw.partition(b"\r\n\r\n")[0].decode("utf-8", "replace").replace("\r\n", "\n")
