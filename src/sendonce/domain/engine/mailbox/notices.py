"""Bounces in words for people: many servers send no report for programs, or an incomplete one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sendonce.domain.engine.mailbox.addresses import addresses_in, first_address
from sendonce.domain.engine.mailbox.causes import ENHANCED, HARD, Cause, Diagnosis, diagnose
from sendonce.domain.engine.mailbox.mime import Mail, read_headers
from sendonce.domain.engine.mailbox.patterns import any_of
from sendonce.domain.engine.mailbox.replies import is_reply

_LINES_OF_A_REASON = 12
_LONGEST_NOTICE = 8_000

_DAEMON = re.compile(
    r"(?:mailer-?daemon|mail-?daemon|postmaster|mail[-_. ]?(?:delivery|system|failure|admin)|mdaemon|qmail"
    r"|bounces?|ndr|mails?erv(?:er|ice)|majordomo|microsoftexchange[0-9a-f]{20,}|symantec|mmdf)[^@]{0,60}(?:@|$)"
    r"|(?:exchange|smtp)[-_.]?(?:daemon|server|gateway|system)?[0-9]{0,4}(?:@|$)",
    re.IGNORECASE,
)
_DAEMON_NAME = re.compile(
    r"mail(?:er)?[- ]?(?:daemon|delivery (?:sub)?system|delivery service)|system administrator|administrator"
    r"|postmaster|mail delivery|internet mail delivery|mail system|почтов\w+ (?:сервер|служб|робот)",
    re.IGNORECASE,
)
_FAILURE = any_of(
    "undeliver(?:ed|able)",
    "unzustellbar",
    "not delivered",
    "non-?delivery",
    r"\bndr?n?\b",
    "delivery (?:status )?notification",
    r"(?:delivery|mail|message|sending)[^\n.]{0,40}(?:fail|error|problem|rejected|impossible|unsuccessful)",
    r"fail(?:ed|ure)[^\n.]{0,40}(?:deliver|mail|notice|recipient)",
    "returned (?:mail|to sender|e-?mail)",
    "mail failure",
    "(?:could|can) ?n[o']t be (?:delivered|sent)",
    "(?:unable|not able) to deliver",
    "wasn'?t delivered",
    r"(?:following|one or more)[^\n.]{0,40}(?:recipient|address)[^\n.]{0,60}(?:fail|could|reach|reject)",
    "permanent (?:fatal )?error",
    "did not reach",
    "delivery has failed",
    r"bounced?\b",
    "rejected your message",
    "blocked",
    "недоставлен",
    "не (?:может быть |была? |было )?доставлен",
    "не удалось (?:доставить|отправить)",
    "ошибка доставки",
    "невозможно доставить",
    "не (?:может|могло) быть (?:доставлено|отправлено)",
    "(?:has been|been) returned",
    "encountered an error",
    "automatically rejected",
    "无法",
    "退信",
    "n'a pas pu [êe]tre",
    "échec",
    "no se (?:ha podido|pudo) entregar",
    "fehlgeschlagen",
    "konnte nicht zugestellt",
    "mancata consegna",
)
# Subjects that only servers write, also where they do not call themselves one.
_PLAIN_FAILURE = re.compile(
    r"\W*(?:undeliver(?:ed|able)|mail delivery (?:failed|failure)|delivery (?:failure|status notification)"
    r"|returned mail|failure notice|mail could not be delivered|message (?:could )?not (?:be )?delivered"
    r"|недоставленн|ошибка доставки|(?:ваше )?(?:письмо|сообщение) не (?:было )?доставлено"
    r"|не удалось доставить|невозможно доставить)",
    re.IGNORECASE,
)
_DELAY = any_of(
    r"\bdelay(?:ed)?\b",
    "warning: (?:message|could not send)",
    "not yet been delivered",
    "still (?:being|trying)",
    r"will (?:continue|keep|be)[^\n.]{0,20}(?:trying|retried|to try)",
    "warning message only",
    "not been delivered yet",
    "temporary (?:delivery )?(?:failure|problem)",
    "задерж",
    "ещ[её] не доставлен",
    "verzögert",
    "(?:delivery )?incomplete",
)
_FINAL = any_of(
    "giving up",
    "gave up",
    "permanent",
    "too long",
    "fatal error",
    "has failed",
    "failed permanently",
    "will not (?:be )?(?:retried|try)",
    "not (?:going to )?try again",
    "could not be delivered for",
    "expired",
)
_LIST_BEGINS = re.compile(
    r"(?:following|intended|failed)[^\n]{0,40}(?:recipient|address|user|people)[^\n]{0,80}:|получател[^\n]{0,60}:"
    r"|failed to deliver to|(?:could not be|wasn'?t|not) delivered to[^\n]{0,40}:|адресат[^\n]{0,60}:",
    re.IGNORECASE,
)
_RETURNED = re.compile(
    r"^.{0,20}?(?:--|==|\*\*|___).{0,120}?(?:copy of|original|returned|unsent|below this line"
    r"|undelivered|message header|body of message|text of|оригинал|копия|исходн)"
    r"|^(?:original|returned) (?:message|headers)\b"
    r"|^\s*(?:below is a copy of|message headers follow|your original message)"
    r"|^the original message (?:follows|is|was not)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Notice:
    delayed: bool
    recipient: str | None
    diagnosis: Diagnosis


def from_daemon(mail: Mail) -> bool:
    """Whether a mail server wrote it, by its own words: anybody can, so nothing follows from it alone."""
    return _has_no_sender(mail) or _calls_itself_daemon(mail)


def read_notice(mail: Mail) -> Notice | None:
    """None for what is no bounce."""
    failed = mail.headers.get("x-failed-recipients")
    notice = notice_of(mail)
    if not failed and not _tells_of_trouble(mail, notice):
        return None
    recipient = first_address(failed) or _recipient(mail, notice)
    delayed = not failed and _is_delay(mail.headers.get("subject"), notice)
    return Notice(delayed, recipient, _reason(notice, recipient))


def _has_no_sender(mail: Mail) -> bool:
    """RFC 5321 §4.5.5: reports have an empty return path. So have many automatic replies."""
    return mail.headers.get("return-path").replace(" ", "") == "<>"


def _looks_like_an_answer(mail: Mail) -> bool:
    """In a thread, with a sender, and no header or part of a report: a postmaster may answer, too."""
    by_machine = _has_no_sender(mail) or "auto-submitted" in mail.headers
    return is_reply(mail) and not by_machine and mail.content_type != "multipart/report"


def _calls_itself_daemon(mail: Mail) -> bool:
    sender = mail.headers.get("from")
    address = first_address(sender) or ""
    return bool(_DAEMON.match(address) or _DAEMON_NAME.search(sender.partition("<")[0]))


def _tells_of_trouble(mail: Mail, notice: str) -> bool:
    subject, beginning = mail.headers.get("subject"), notice[:1500]
    in_words = bool(_FAILURE.search(beginning) or _DELAY.search(f"{subject}\n{beginning}"))
    said = diagnose(notice)
    if _looks_like_an_answer(mail):
        return _calls_itself_daemon(mail) and in_words and ENHANCED.search(notice) is not None
    if _calls_itself_daemon(mail):
        return in_words or bool(_FAILURE.search(subject)) or said.code is not None or said.cause in HARD
    by_machine = _has_no_sender(mail) or _PLAIN_FAILURE.match(subject) is not None
    return by_machine and in_words and (said.code is not None or said.cause in HARD)


def notice_of(mail: Mail) -> str:
    """The server's words, without the letter that it gives back."""
    text = mail.text[: _LONGEST_NOTICE * 2]
    returned = _RETURNED.search(text)
    return (text[: returned.start()] if returned else text)[:_LONGEST_NOTICE]


def returned_in(mail: Mail) -> str:
    """What stands behind the server's words: the letter, where it is no part of its own."""
    returned = _RETURNED.search(mail.text)
    return mail.text[returned.end() :] if returned else ""


def _is_delay(subject: str, notice: str) -> bool:
    if _DELAY.search(subject):
        return not _FINAL.search(subject)
    return bool(_DELAY.search(notice[:1500])) and not _FINAL.search(notice) and not _FAILURE.search(subject)


def _recipient(mail: Mail, notice: str) -> str | None:
    """The first address that is neither the server's nor that of the mailbox in which the notice lies."""
    own = {first_address(mail.headers.get(name)) for name in ("to", "from", "delivered-to", "x-original-to")}
    listed = _LIST_BEGINS.search(notice)
    for text in (notice[listed.end() :] if listed else "", notice):
        for address in addresses_in(text):
            if address not in own and not _DAEMON.match(address):
                return address
    given_back = mail.returned or returned_in(mail).strip("\n -=*")
    return first_address(read_headers(given_back.split("\n\n", 1)[0].encode()).get("to"))


def _reason(notice: str, recipient: str | None) -> Diagnosis:
    """What stands next to the recipient; else what the whole notice says."""
    lines = notice.splitlines()
    for number, line in enumerate(lines):
        if recipient and recipient.lower() in line.lower():
            near = diagnose(" ".join(lines[number : number + _LINES_OF_A_REASON]), recipient=recipient)
            if near.cause is not Cause.UNKNOWN:
                return near
    return diagnose(notice, recipient=recipient)
