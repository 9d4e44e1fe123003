"""The sender: who a provider judges, and when it is held because the provider refuses it.

A refusal is either the letter's (a bad address, bad content) or the sender's (its account, its identity, its
configuration). The sender's refusals would meet every other letter too, and so would an outage of its
provider; so the sender is held:

    sending ──refused──► held until T ──T has come──► one letter is tried ──accepted──► sending
                             ▲                                │
                             └────── longer, up to an hour ◄──┘ refused again

A sender on SES may have a second region. Where the region itself is in trouble, the hold at home sends the
letters round by the second one (``elsewhere``), until one letter that is tried at home is accepted there:

    home ──paused, or a run of outages──► away ──after a quiet time, one letter is tried at home──► home
                                            ▲                          │
                                            └── twice the quiet time ◄─┘ refused again, or in doubt

A person can end a hold at any time, and can hold a sender until it is released again. The letters wait
unharmed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused

OWN_SENDER = ""
"""The id of the environment's own sender, which has no row."""
FIRST_HOLD = 60.0
LONGEST_HOLD = 3600.0
PROBE_WITHIN = 60.0
"""Seconds that a probe has for its answer before another letter may be tried."""
RUN_THAT_HOLDS = 20
"""So many equal refusals in a row, and no letter accepted between them, are the sender's trouble."""
OUTAGES_THAT_HOLD = 5
OUTAGES_WITHIN = 300.0
"""So many troubles of a provider in so many seconds, and no letter accepted between them, hold its senders,
or move them to their second region."""
FIRST_OUTAGE_HOLD = 15.0
LONGEST_OUTAGE_HOLD = 60.0
"""A provider that cannot be reached may be back at any time, and a try costs it nothing."""
LONGEST_AWAY = 86_400.0
OUTAGE = "outage"
"""The code of a hold because of a run of them."""
ENGINE = "the engine"
"""Who moves senders where no person does, in the audit log."""
BY_HAND = "by_hand"
"""The code of a hold that a person ordered."""
NOT_SET_UP = "settings"
"""The code of a hold because its secret is missing or its settings contradict each other."""
BAD_DOMAIN = "dns"
"""The code of a hold because of what the DNS says of its domain. The next check that passes ends it."""
UNTIL_RELEASED = datetime(9999, 1, 1, tzinfo=UTC)
"""The next try of a sender that only a person lets go."""


class SenderKey(NamedTuple):
    """Whom the provider judges. ``account`` is an SES region or an SMTP host; it has no slash."""

    transport: str
    account: str
    address: str

    def __str__(self) -> str:
        return "/".join(self)


class SenderKeys(NamedTuple):
    """Whom the provider judges at home and, where the sender has a second region, there."""

    home: str
    second: str | None = None


def read_key(text: str) -> SenderKey:
    """The parts of a key that was written with ``str``; missing parts are empty."""
    parts = (*text.split("/", 2), "", "")
    return SenderKey(*parts[:3])


@dataclass(frozen=True, slots=True)
class SenderHold:
    """A held sender. ``tries`` counts the refusals: the first one and those of the probes.

    ``elsewhere``: meanwhile its letters leave through its second region, if it has one.
    """

    key: str
    code: str
    reason: str
    held_at: datetime
    next_try_at: datetime
    tries: int
    elsewhere: bool = False

    @property
    def until_released(self) -> bool:
        return self.next_try_at >= UNTIL_RELEASED

    @property
    def next_try(self) -> datetime | None:
        """None where only a person lets it go."""
        return None if self.until_released else self.next_try_at

    def lets_nobody_try(self, now: datetime) -> bool:
        return now < self.next_try_at


class HoldOrder(NamedTuple):
    """What the engine asks a store to hold, and for how long.

    ``probe`` marks the answer to the letter that was tried during a hold: it makes the hold longer. Any other
    refusal met the sender before it was held, and changes nothing.
    """

    code: str
    reason: str
    seconds: float
    probe: bool = False
    elsewhere: bool = False


def hold_seconds(tries: int, retry_after: float | None) -> float:
    """How long the ``tries``-th refusal holds the sender."""
    grown: float = FIRST_HOLD * 2.0 ** min(tries - 1, 10)
    return min(max(grown, retry_after or 0.0), LONGEST_HOLD)


def outage_seconds(tries: int) -> float:
    """How long the ``tries``-th outage holds a sender that has no second region."""
    grown: float = FIRST_OUTAGE_HOLD * 2.0 ** min(tries - 1, 10)
    return min(grown, LONGEST_OUTAGE_HOLD)


def away_seconds(tries: int, quiet_time: float) -> float:
    """How long the ``tries``-th trouble of a region keeps a sender away from it."""
    grown: float = quiet_time * 2.0 ** min(tries - 1, 10)
    return min(grown, max(LONGEST_AWAY, quiet_time))


def is_away(keys: SenderKeys, hold_of: Callable[[str], SenderHold | None]) -> SenderHold | None:
    """Why a sender's letters leave through its second region, if they do."""
    if keys.second is None:
        return None
    hold = hold_of(keys.home)
    return hold if hold is not None and hold.elsewhere else None


def hold_in_force(keys: SenderKeys, hold_of: Callable[[str], SenderHold | None]) -> SenderHold | None:
    """What keeps a sender from sending, whichever region its letters leave through now."""
    if keys.second is not None and is_away(keys, hold_of) is not None:
        return hold_of(keys.second)
    return hold_of(keys.home)


def words_of_away(keys: SenderKeys, away: SenderHold) -> str:
    there = read_key(keys.second or "").account
    since = f"{away.held_at:%Y-%m-%d %H:%M} UTC"
    return f"Its letters leave through its second region {there} since {since}: {away.reason}"


def words_of_hold(hold: SenderHold) -> str:
    until = f"next try {hold.next_try:%Y-%m-%d %H:%M} UTC" if hold.next_try else "until it is released"
    return f"{hold.reason} (since {hold.held_at:%Y-%m-%d %H:%M} UTC, {until})"


def put_down_to_sender(outcome: Outcome, hold: SenderHold) -> Outcome:
    """The answer to a probe: a letter that meets the very refusal of the hold is not at fault."""
    if isinstance(outcome, Refused) and outcome.code == hold.code:
        return Deferred(outcome.code, outcome.reason, throttle=True, hold=True)
    return outcome


class RefusalRun:
    """Counts equal refusals in a row. Deferrals and doubts neither count nor break a run."""

    def __init__(self) -> None:
        self.length = 0
        self._words: tuple[str, str] | None = None

    def observe(self, outcome: Outcome) -> bool:
        """Whether this outcome makes the run long enough to hold the sender; then a new run begins."""
        if isinstance(outcome, Accepted):
            self.length = 0
        elif isinstance(outcome, Refused):
            words = (outcome.code, same_words(outcome.reason))
            self.length = self.length + 1 if self.length and words == self._words else 1
            self._words = words
        if self.length < RUN_THAT_HOLDS:
            return False
        self.length = 0
        return True


class OutageRun:
    """Counts the troubles of a provider since the last letter that was accepted there.

    Each letter without a clear answer counts. Connections that fail within a second of each other are one
    trouble: they may all have met the same moment.
    """

    def __init__(self) -> None:
        self._moments: list[float] = []

    def end(self) -> None:
        self._moments.clear()

    def observe(self, outcome: Outcome, now: float) -> bool:
        """Whether this outcome makes the run long enough to count for the sender; then a new one begins."""
        if isinstance(outcome, Accepted):
            self.end()
        if not isinstance(outcome, Deferred | InDoubt) or not outcome.outage:
            return False
        if isinstance(outcome, Deferred) and self._moments and now - self._moments[-1] < 1.0:
            return False
        self._moments = [*(m for m in self._moments if now - m < OUTAGES_WITHIN), now]
        if len(self._moments) < OUTAGES_THAT_HOLD:
            return False
        self.end()
        return True


def reason_of_outage(outcome: Deferred | InDoubt) -> str:
    return (
        f"{OUTAGES_THAT_HOLD} troubles of the provider within {OUTAGES_WITHIN:.0f} seconds, and no letter "
        f"was taken between them. The last: {outcome.reason}"
    )


_ADDRESS = re.compile(r"[^\s<>@]+@[^\s<>@]+")
_NUMBERED = re.compile(r"[^\s]*\d[^\s]*")


def same_words(reason: str) -> str:
    """A refusal without what differs from letter to letter: addresses, numbers, ids of a session."""
    return " ".join(_NUMBERED.sub("#", _ADDRESS.sub("@", reason[:500].lower())).split())


def reason_of_run(refused: Refused, dispatch_id: str) -> str:
    """Why a run of refusals holds the sender, and how its failed letters get another life."""
    return (
        f"{RUN_THAT_HOLDS} letters in a row were refused with the same words: {refused.reason} "
        "They are failed; after the cause is mended, give them another life: "
        f"sendonce jobs retry --failed --mailout {dispatch_id} --code {refused.code}"
    )
