"""Brakes: when bounces stop a campaign, complaints block a sender, and deferrals slow it down.

Shares of a few letters say little: of twenty good letters, two bounce by chance often enough. So every rule
asks how likely what it sees would be if all were well, and the tests simulate how often it is wrong:

- *bounce*: a campaign starts with the credit of 49 letters that arrived. It pauses when its bounces, among
  the letters of the window and those, are more than all but 5 % of lists at the limit would have. Of
  campaigns of 1,000 letters with 3 % of bounces fewer than one in a hundred is paused; with 20 % half of
  them are within 40 letters.
- *complaint*: the first one suppresses the person and slows the sender down; the second within the window
  blocks the sender if their share is above the limit. Of senders with 0.02 % of complaints fewer than one
  in fifty is blocked in 1,000 letters.
- *deferral*: where more letters are put off than the limit allows, with the same care as for bounces, the
  rate halves. It recovers by a tenth an hour.

A window counts letters that were accepted, the newest ones, and what became of those very letters: an old
bounce does not weigh on new letters, and a late one counts where its letter stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from math import exp, lgamma, log, log1p

from sendonce.errors import BadInput

CREDIT = 49
_SURE = 0.95


class Rule(StrEnum):
    BOUNCE = "bounce"
    COMPLAINT = "complaint"
    DEFERRAL = "deferral"


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares, and the number of letters over which each is looked at."""

    bounce: float = 0.05
    bounce_window: int = 1000
    complaint: float = 0.001
    complaint_window: int = 1000
    deferral: float = 0.10
    deferral_window: int = 200

    def __post_init__(self) -> None:
        for rule in Rule:
            share, window = getattr(self, rule), getattr(self, f"{rule}_window")
            if not 0 < share < 1:
                raise BadInput(f"The limit of the brake {rule} is a share between 0 and 1, not {share}.")
            if window < 1:
                raise BadInput(f"The window of the brake {rule} is a number of letters, not {window}.")

    def tightened(self, wanted: Limits) -> Limits:
        """The stricter of both, rule by rule: a campaign may brake sooner than the house, never later."""
        return replace(
            self,
            bounce=min(self.bounce, wanted.bounce),
            complaint=min(self.complaint, wanted.complaint),
            deferral=min(self.deferral, wanted.deferral),
        )


@dataclass(frozen=True, slots=True)
class Brake:
    """How one rule stands: so many of so many letters."""

    rule: Rule
    count: int
    letters: int
    limit: float
    window: int
    tripped: bool

    @property
    def value(self) -> float:
        return self.count / self.letters if self.letters else 0.0

    def reason(self) -> str:
        """With its numbers, for logs, statuses and alerts."""
        what = {
            Rule.BOUNCE: "letters bounced",
            Rule.COMPLAINT: "people complained of letters",
            Rule.DEFERRAL: "letters were put off by their receivers",
        }[self.rule]
        return (
            f"{self.count} of the last {self.letters} {what} ({self.value:.1%}; the limit is "
            f"{self.limit:.1%} of {self.window})."
        )


def bounce_brake(bounces: int, letters: int, limits: Limits) -> Brake:
    tripped = _is_above(bounces, letters, limits.bounce)
    return Brake(Rule.BOUNCE, bounces, letters, limits.bounce, limits.bounce_window, tripped)


def complaint_brake(complaints: int, letters: int, limits: Limits) -> Brake:
    tripped = complaints >= 2 and complaints > limits.complaint * letters
    return Brake(Rule.COMPLAINT, complaints, letters, limits.complaint, limits.complaint_window, tripped)


def deferral_brake(deferrals: int, letters: int, limits: Limits) -> Brake:
    tripped = _is_above(deferrals, letters, limits.deferral)
    return Brake(Rule.DEFERRAL, deferrals, letters, limits.deferral, limits.deferral_window, tripped)


def _is_above(count: int, letters: int, limit: float) -> bool:
    """Whether the true share is above the limit with 95 % certainty, for one who expects 2 % beforehand."""
    return count > limit * letters and binomial_up_to(count, letters + CREDIT, limit) > _SURE


def binomial_up_to(count: int, trials: int, share: float) -> float:
    """The probability of at most so many of so many, each with this share."""
    if count >= trials:
        return 1.0
    total = 0.0
    for successes in range(count + 1):
        ways = lgamma(trials + 1) - lgamma(successes + 1) - lgamma(trials - successes + 1)
        total += exp(ways + successes * log(share) + (trials - successes) * log1p(-share))
    return min(1.0, total)


_SLOWEST = 1 / 64
_STEP_UP = 0.1
PACE_HOLDS = timedelta(hours=1)
"""How long a pace stays as it is: what it does shows only in later letters."""


def next_pace(pace: float, since: timedelta, *, slower: bool) -> float:
    """The share of its rate that a sender keeps: it halves at once and recovers by a tenth an hour."""
    if since < PACE_HOLDS:
        return pace
    return max(_SLOWEST, pace / 2) if slower else min(1.0, pace + _STEP_UP)
