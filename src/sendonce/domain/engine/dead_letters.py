"""Dead letters: why their tries were used up, in the few causes that ask for different things."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sendonce.domain.engine.jobs import Job
from sendonce.domain.engine.mailbox.causes import Cause, diagnose


class DeadCause(StrEnum):
    """As a person types them."""

    NO_MAILBOX = "no-mailbox"
    NO_DOMAIN = "no-domain"
    FULL = "full"
    TOO_FAST = "too-fast"
    FILTERED = "filtered"
    UNREACHED = "unreached"
    SENDER = "sender"
    LETTER = "letter"
    UNKNOWN = "unknown"


ADVICE: Mapping[DeadCause, str] = {
    DeadCause.NO_MAILBOX: "Do not retry: nobody reads it. Suppress the address or correct it in the list.",
    DeadCause.NO_DOMAIN: "Do not retry before somebody has corrected the address.",
    DeadCause.FULL: "Retry once, in a week.",
    DeadCause.TOO_FAST: "Lower the rate, then retry.",
    DeadCause.FILTERED: "Find out what the filter dislikes (doctor, blocklists, the text), then retry a few.",
    DeadCause.UNREACHED: "Retry when the server answers again.",
    DeadCause.SENDER: "Mend the sender (doctor says how), then retry.",
    DeadCause.LETTER: "Do not retry: this letter will be refused again.",
    DeadCause.UNKNOWN: "Read the samples; retry one and see.",
}

_BY_DIAGNOSIS: Mapping[Cause, DeadCause] = {
    Cause.NO_MAILBOX: DeadCause.NO_MAILBOX,
    Cause.DISABLED: DeadCause.NO_MAILBOX,
    Cause.NO_DOMAIN: DeadCause.NO_DOMAIN,
    Cause.FULL: DeadCause.FULL,
    Cause.FILTERED: DeadCause.FILTERED,
    Cause.OURS: DeadCause.SENDER,
    Cause.UNFIT: DeadCause.LETTER,
    Cause.UNREACHED: DeadCause.UNREACHED,
    Cause.UNKNOWN: DeadCause.UNKNOWN,
}
# Greylisting is among them: whoever comes back later is let in.
_TOO_FAST = re.compile(
    r"throttl|too many|too fast|rate.?limit|limit exceeded|LimitExceeded|slow down|gr[ae]y.?list|http_429"
    r"|unusual rate|4\.7\.28",
    re.IGNORECASE,
)
_UNREACHED = re.compile(
    r"connect_failed|timed? ?out|timeout|connection|unreachable|http_5\d\d", re.IGNORECASE
)
_SENDER = re.compile(r"credential|signature|authenticat|http_403|\b(?:530|534|535|538)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Letters that ended for one cause: how many, with which codes, and the newest as a sample."""

    cause: DeadCause
    count: int
    codes: Mapping[str, int]
    sample: Job

    @property
    def advice(self) -> str:
        return ADVICE[self.cause]


def cause_of(job: Job) -> DeadCause:
    """By what was said last. Being too fast is asked first: servers dress it in the words of filters."""
    said = " ".join(filter(None, (job.code, job.reason)))
    if _TOO_FAST.search(said):
        return DeadCause.TOO_FAST
    found = _BY_DIAGNOSIS[diagnose(said).cause]
    if found is not DeadCause.UNKNOWN:
        return found
    if _SENDER.search(said):
        return DeadCause.SENDER
    return DeadCause.UNREACHED if _UNREACHED.search(said) else DeadCause.UNKNOWN
