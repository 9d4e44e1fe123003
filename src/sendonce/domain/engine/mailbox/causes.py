"""Why a letter came back, by what the receiving server said, and whether its address is to blame.

Only words or codes that say "there is no such mailbox" or "no such domain" make a bounce hard. A full
mailbox, a filter, a blocklist, our own fault and anything unclear are soft: a wrong hard bounce would end the
writing to somebody who can be reached.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sendonce.domain.engine.mailbox import server_words

LONGEST_REASON = 300


class Bounce(StrEnum):
    HARD = "hard"
    SOFT = "soft"


class Cause(StrEnum):
    NO_MAILBOX = "no such mailbox"
    DISABLED = "the mailbox is disabled"
    NO_DOMAIN = "no such domain"
    FULL = "the mailbox is full"
    FILTERED = "a filter or a policy"
    OURS = "the sender's fault"
    UNFIT = "the letter itself"
    UNREACHED = "the server was not reached"
    UNKNOWN = "unknown"


HARD = frozenset({Cause.NO_MAILBOX, Cause.DISABLED, Cause.NO_DOMAIN})

ENHANCED = re.compile(r"(?<![\d.])([45])\.(\d{1,3})\.(\d{1,3})(?![\d.]*\d)")
"""RFC 3463. An IP address has four numbers and is none."""
_REPLY = re.compile(r"(?<![\d./-])(?<!\d:)([45]\d\d)(?=[\s,:;)\]-](?!\d\d\d\d)|$)")

_ADDRESS = re.compile(r"[^\s<>()\[\],;:\"'@]{1,64}@[^\s<>()\[\],;:\"'@]{1,255}")
_LINK = re.compile(r"\b(?:https?://|www\.)[^\s<>\"']{1,500}", re.IGNORECASE)
_NAMED_DOMAIN = re.compile(
    r"\b(?:domain|домен)(?: name)?:? <?([\w-]{1,63}(?:\.[\w-]{1,63}){1,5})\b", re.IGNORECASE
)

# The second and third numbers of RFC 3463, with what Microsoft 365 adds to them. The class is asked apart.
_BY_CODE = {
    "1.0": Cause.NO_MAILBOX, "1.1": Cause.NO_MAILBOX, "1.3": Cause.NO_MAILBOX, "1.6": Cause.NO_MAILBOX,
    "1.10": Cause.NO_MAILBOX, "1.2": Cause.NO_DOMAIN, "4.4": Cause.UNREACHED, "4.310": Cause.NO_DOMAIN,
    "1.7": Cause.OURS, "1.8": Cause.OURS, "4.5": Cause.OURS, "2.1": Cause.DISABLED, "2.2": Cause.FULL,
    "2.3": Cause.UNFIT, "3.4": Cause.UNFIT, "4.6": Cause.UNFIT, "4.14": Cause.UNFIT, "3.1": Cause.FULL,
}  # fmt: skip
# Codes that speak of the sender whatever the words are, and codes beside which only the plainest words count.
_OF_SENDER = frozenset({"1.7", "1.8"})
_ABOUT_OTHERS = re.compile(r"3\.0|[67]\.\d+")
_BY_SUBJECT = {"3": Cause.UNFIT, "4": Cause.UNREACHED, "6": Cause.UNFIT, "7": Cause.FILTERED}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    cause: Cause
    code: str | None
    reason: str

    @property
    def bounce(self) -> Bounce:
        return Bounce.HARD if self.cause in HARD and not self._passing else Bounce.SOFT

    @property
    def _passing(self) -> bool:
        """The server called it temporary: whatever it says, it may take the letter another day."""
        return self.code is not None and self.code.startswith("4")


def diagnose(said: str, status: str = "", recipient: str | None = None) -> Diagnosis:
    """``said`` is the server's own reply; ``status`` the report's field, which is often less exact."""
    said = " ".join(said.split())[:4000]
    code = _code(said, status)
    cause = _cause(_without_addresses(said, recipient), code)
    if cause is Cause.NO_DOMAIN and _names_another_domain(said, recipient):
        cause = Cause.OURS
    return Diagnosis(cause, code, readable(said))


def readable(text: str) -> str:
    """One line for people and tables."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1].rstrip() + "…"


def _code(said: str, status: str) -> str | None:
    exact = [found[0] for found in ENHANCED.finditer(said)]
    given = ENHANCED.search(status)
    if given and not given[0].endswith(".0.0"):
        return given[0]
    if exact:
        return next((code for code in exact if not code.endswith(".0.0")), exact[0])
    reply = _REPLY.search(said)
    return given[0] if given and not reply else reply[1] if reply else None


def _without_addresses(said: str, recipient: str | None) -> str:
    """Words inside an address say nothing. The recipient's own leaves a mark: "<ivan@…> does not exist"."""
    own = (recipient or "").lower()
    return _ADDRESS.sub(lambda it: server_words.RECIPIENT if it[0].lower() == own else " ", said)


def _cause(said: str, code: str | None) -> Cause:
    """Words are asked first: mx.yandex.ru says "5.7.1 No such user!", and filters like to say 5.1.1.

    Words of a link are asked where no other word tells the cause.
    """
    words = _LINK.sub(" ", said)
    cause = _by_words(words) or _by_code(code)
    if cause not in HARD:
        return cause
    if _detail(code) in _OF_SENDER:
        return Cause.OURS
    if _ABOUT_OTHERS.fullmatch(_detail(code)) and not server_words.SURELY_GONE.search(words):
        return _by_code(code)
    linked = _by_words(said)
    return cause if _by_words(words) or linked is None else linked


def _by_words(words: str) -> Cause | None:
    return next((cause for cause, pattern in _IN_ORDER if pattern.search(words)), None)


def _names_another_domain(said: str, recipient: str | None) -> bool:
    """ "Domain ours.example does not exist": then the sender's is meant."""
    named = _NAMED_DOMAIN.search(said)
    if named is None or recipient is None:
        return False
    theirs, told = f".{recipient.rpartition('@')[2]}".lower(), f".{named[1]}".lower()
    return not theirs.endswith(told) and not told.endswith(theirs)


_IN_ORDER = (
    (Cause.FULL, server_words.FULL),
    (Cause.DISABLED, server_words.ABANDONED),
    (Cause.FILTERED, server_words.FILTERED),
    (Cause.OURS, server_words.OURS),
    (Cause.UNREACHED, server_words.NOT_LOOKED_UP),
    (Cause.NO_DOMAIN, server_words.NO_DOMAIN),
    (Cause.NO_MAILBOX, server_words.NO_MAILBOX),
    (Cause.DISABLED, server_words.DISABLED),
    (Cause.UNFIT, server_words.UNFIT),
    (Cause.UNREACHED, server_words.UNREACHED),
)


def _by_code(code: str | None) -> Cause:
    detail = _detail(code)
    return _BY_CODE.get(detail) or _BY_SUBJECT.get(detail.partition(".")[0], Cause.UNKNOWN)


def _detail(code: str | None) -> str:
    """ "7.1" of "5.7.1"; empty where the code is none of RFC 3463."""
    return (code or "").partition(".")[2]
