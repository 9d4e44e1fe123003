"""What an SMTP server says: its replies, read within bounds, and what they mean for a letter.

Everything here is hostile input. A reply line may have 2 KB and a reply 100 lines (RFC 5321
§4.5.3.1.5 asks for 512 octets a line), and what ends up in a reason is printable ASCII.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from sendonce.domain.engine.outcomes import Accepted, Deferred, Outcome, Refused

MAX_LINE = 2048
MAX_LINES = 100
MESSAGE_ID_LENGTH = 120
REASON_LENGTH = 300

# How long the whole transport rests, in seconds. A person has to act on the last two.
REST_AFTER_LOSS = 5.0
REST_AFTER_UNREACHABLE = 15.0
REST_AFTER_BUSY = 60.0
REST_AFTER_TLS_TROUBLE = 300.0
REST_AFTER_DENIED = 600.0

# 421 ends the session (RFC 5321 §3.8). In mid-session it is often no more than a limit of letters per
# connection, so the rest is short; a server in real trouble says it again as its greeting.
_CLOSING = 421
# A temporary authentication or TLS failure (RFC 4954, RFC 3207); Amazon SES says it for "maximum
# sending rate exceeded".
_BUSY = 454
# Authentication required, or too weak (RFC 4954 §6), or commands out of order. Said to RCPT, DATA or the dot
# while other letters pass, it may be about this letter.
_DENIED = frozenset({503, 530, 534, 538})
_WRONG_PASSWORD = 535
_ENDING = frozenset(str(code) for code in (_CLOSING, *_DENIED))

# Enhanced status codes (RFC 3463) that blame the sender, whichever command they answer: a bad sender address
# (Postfix says so to RCPT), Gmail's daily limit, Exchange's "no permission to send as this sender".
_SENDERS_STATUS = re.compile(rb"\s*[45]\.(?:1\.[78]|4\.5|7\.60)\b").match
# Said without a status of its own by Postfix (a sender that is not the account's) and by Amazon SES.
_SENDERS_WORDS = re.compile(rb"sender address rejected|email address is not verified", re.IGNORECASE).search

# Nearly every reply: one line, and well formed. What this does not match is read with care.
_PLAIN_REPLY = re.compile(rb"([2-5][0-9][0-9]) ([^\r\n]{0,1000})\r\n").match
# What nearly every letter gets where the next envelope rode behind its body: this one is taken (its words are
# in the group), and the body of the next is asked for.
usual_round = re.compile(
    rb"250 ([^\r\n]{0,1000})\r\n(?:250 [^\r\n]{0,1000}\r\n){2}354 [^\r\n]{0,1000}\r\n"
).fullmatch

_PRINTABLE = bytes(byte if 32 <= byte < 127 else 32 for byte in range(256))


class Reply(NamedTuple):
    """A complete reply. ``text`` holds the lines without their codes, joined by LF."""

    code: int
    text: bytes

    @property
    def positive(self) -> bool:
        return 200 <= self.code < 300

    @property
    def negative(self) -> bool:
        return self.code >= 400

    @property
    def out_of_order(self) -> bool:
        return self.code == 503


class GarbledReply(Exception):
    """What came is not SMTP. The message quotes it."""


class SessionFailed(Exception):
    """No session, and no letter's fault: ``outcome`` is what its letters get."""

    def __init__(self, outcome: Deferred) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class ReplyReader:
    """Cuts the bytes of a connection into replies. Pull ``next()`` until it gives None."""

    __slots__ = ("_code", "_lines", "_pending", "_start")

    def __init__(self) -> None:
        self._pending = b""
        self._start = 0
        self._code = 0
        self._lines: list[bytes] = []

    @property
    def drained(self) -> bool:
        """True when the server has said nothing beyond the replies already pulled."""
        return self._start == len(self._pending) and not self._lines

    def feed(self, data: bytes) -> None:
        self._pending = self._pending[self._start :] + data
        self._start = 0

    def next(self) -> Reply | None:
        plain = None if self._lines else _PLAIN_REPLY(self._pending, self._start)
        if plain is not None:
            self._start = plain.end()
            return Reply(int(plain[1]), plain[2])
        while (end := self._pending.find(b"\n", self._start)) != -1:
            line = self._pending[self._start : end]
            self._start = end + 1
            reply = self._take_line(line)
            if reply is not None:
                return reply
        if len(self._pending) - self._start > MAX_LINE:
            raise GarbledReply(f"a reply line of more than {MAX_LINE} bytes")
        return None

    def _take_line(self, line: bytes) -> Reply | None:
        if line.endswith(b"\r"):
            line = line[:-1]
        code = _code_of(line)
        if self._lines and code != self._code:
            raise GarbledReply(f"a reply that changes its code from {self._code} to {code}")
        if line[3:4] != b"-" and not self._lines:
            return Reply(code, line[4:])
        self._lines.append(line[4:])
        if line[3:4] == b"-":
            if len(self._lines) >= MAX_LINES:
                raise GarbledReply(f"a reply of more than {MAX_LINES} lines")
            self._code = code
            return None
        reply = Reply(code, b"\n".join(self._lines))
        self._lines = []
        return reply


def _code_of(line: bytes) -> int:
    digits = line[:3]
    if len(line) > MAX_LINE or len(digits) < 3 or not digits.isdigit() or not b"200" <= digits < b"600":
        raise GarbledReply(f"not an SMTP reply: {tidy(line, 80)!r}")
    if line[3:4] not in b" -":
        raise GarbledReply(f"not an SMTP reply: {tidy(line, 80)!r}")
    return int(digits)


def tidy(text: bytes, limit: int = REASON_LENGTH) -> str:
    """Printable ASCII on one line, at most ``limit`` characters: fit for a row, a log, a terminal."""
    return " ".join(text[: 4 * limit].translate(_PRINTABLE).decode("ascii").split())[:limit]


def acceptance(words: bytes) -> Accepted:
    """The server took the letter; its words usually hold the queue id."""
    return Accepted(tidy(words, MESSAGE_ID_LENGTH))


class Stage(Enum):
    """What a reply answers, once a letter is under way."""

    MAIL = "MAIL"
    RCPT = "RCPT"
    DATA = "DATA"
    DOT = "the letter"


def rejection(reply: Reply, stage: Stage) -> Refused | Deferred:
    """What a 4xx or 5xx means. MAIL names only the sender, so what it gets is the sender's."""
    code, reason = str(reply.code), tidy(reply.text)
    if reply.code == _CLOSING:
        return trouble(code, reason, REST_AFTER_LOSS)
    if stage is Stage.MAIL or _blames_sender(reply):
        return _senders_fault(reply, reason)
    if reply.code == _BUSY:
        return trouble(code, reason, REST_AFTER_BUSY)
    if reply.code in _DENIED:
        return trouble(code, reason, REST_AFTER_DENIED)
    return Refused(code, reason) if reply.code >= 500 else Deferred(code, reason)


def _blames_sender(reply: Reply) -> bool:
    text = reply.text
    return reply.code == _WRONG_PASSWORD or bool(_SENDERS_STATUS(text) or _SENDERS_WORDS(text))


def _senders_fault(reply: Reply, reason: str) -> Deferred:
    if reply.code >= 500:
        return hold(str(reply.code), reason)
    return trouble(str(reply.code), reason, REST_AFTER_BUSY if reply.code == _BUSY else REST_AFTER_LOSS)


def ends_session(outcome: Outcome) -> bool:
    """Whether the session is of no more use: it is closing, or in a state that we do not understand."""
    if not isinstance(outcome, Deferred):
        return False
    return outcome.hold or outcome.code in _ENDING


def trouble(code: str, reason: str, rest: float) -> Deferred:
    """Not this letter's fault: no try is used up, and the transport rests."""
    return Deferred(code, reason, retry_after=rest, throttle=True)


def outage(code: str, reason: str, rest: float) -> Deferred:
    """Trouble that every letter meets, whichever it is: enough of it holds the sender."""
    return replace(trouble(code, reason, rest), outage=True)


def hold(code: str, reason: str, rest: float = REST_AFTER_DENIED) -> Deferred:
    """The sender, the account or the settings are refused: a person has to act."""
    return Deferred(code, reason, retry_after=rest, throttle=True, hold=True)


def untouched(cause: Deferred) -> Deferred:
    """For a letter that came to nothing through no fault of its own: it may leave again at once."""
    return replace(cause, retry_after=0.0, throttle=True, hold=False, local=True, outage=False)


def denial(reply: Reply, during: str) -> Deferred:
    """A server that turns the session down, before any letter came into play."""
    reason = f"{during}: {reply.code} {tidy(reply.text)}".rstrip()
    if reply.code >= 500:
        return hold(str(reply.code), reason)
    return trouble(str(reply.code), reason, REST_AFTER_LOSS if reply.code == _CLOSING else REST_AFTER_BUSY)


@dataclass(frozen=True, slots=True)
class Features:
    """What EHLO told."""

    pipelining: bool = False
    starttls: bool = False
    smtputf8: bool = False
    max_size: int | None = None
    auth: frozenset[str] = frozenset()


def read_features(reply: Reply) -> Features:
    """The extensions in an EHLO reply; its first line is a greeting (RFC 5321 §4.1.1.1)."""
    words = [tidy(line).upper().split() for line in reply.text.split(b"\n")[1:]]
    table = {line[0]: line[1:] for line in words if line}
    size = (table.get("SIZE") or ["0"])[0]
    return Features(
        pipelining="PIPELINING" in table,
        starttls="STARTTLS" in table,
        smtputf8="SMTPUTF8" in table,
        max_size=int(size) if size.isdecimal() and len(size) < 20 and int(size) > 0 else None,  # 0: no limit
        auth=frozenset(table.get("AUTH", ())),
    )
