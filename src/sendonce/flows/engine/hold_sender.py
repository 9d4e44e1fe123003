"""Hold the sender that its provider refuses, and let it go when a probe is accepted.

The engine asks ``judge`` about each answer. What follows from it for the sender is written down before the
next claim, so that no worker claims for a sender that is known to be refused.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from sendonce.domain.engine.jobs import Turn
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.parcels import Parcel
from sendonce.domain.engine.senders import (
    OUTAGE,
    HoldOrder,
    OutageRun,
    RefusalRun,
    SenderHold,
    away_seconds,
    hold_seconds,
    outage_seconds,
    put_down_to_sender,
    reason_of_outage,
    reason_of_run,
)
from sendonce.ports.engine import SenderHolds

log = logging.getLogger(__name__)


class Holding:
    """The sender of one worker: whether it is held, and what its letters say about that.

    ``holds`` is None where nothing is kept, as in a benchmark of the bare engine. ``quiet_time`` is for how
    many seconds the sender leaves a region in trouble for its second one; None where it has none.
    """

    def __init__(self, holds: SenderHolds | None, key: str, quiet_time: float | None = None) -> None:
        self.key = key
        self.quiet_time = quiet_time
        self._holds = holds
        self._run = RefusalRun()
        self._outages = OutageRun()
        self._hold: SenderHold | None = None
        self._probe: str | None = None
        self.unwritten: deque[Callable[[SenderHolds], None]] = deque()
        """What is to be written down before the next claim."""
        self._logged: tuple[datetime, int] | None = None

    @property
    def hold(self) -> SenderHold | None:
        """Why nothing is claimed, as of the last claim."""
        return self._hold

    def note(self, turn: Turn) -> None:
        """What the ledger said: whether the sender is held, and which job is the probe."""
        self._hold = turn.hold
        if turn.hold is not None and turn.claimed:
            self._probe = turn.claimed[0].id

    def judge(self, parcel: Parcel, outcome: Outcome) -> Outcome:
        """The outcome of a letter, put down to the sender where it is the sender's."""
        if type(outcome) is Accepted and self._probe is None:  # nearly every letter
            self._run.length = 0
            self._outages.end()
            return outcome
        if self._holds is None:
            return outcome
        if parcel.job_id == self._probe:
            self._probe = None
            if self._hold is not None:
                return self._judge_probe(self._hold, outcome)
        if isinstance(outcome, Deferred) and outcome.hold:
            return self._refuse_sender(outcome, tries=1)
        if self._outages.observe(outcome, time.monotonic()):
            assert isinstance(outcome, Deferred | InDoubt)
            self._order(self._cut_off(reason_of_outage(outcome), tries=1))
        if self._run.observe(outcome):
            assert isinstance(outcome, Refused)
            reason = reason_of_run(outcome, parcel.dispatch_id)
            self._order(HoldOrder(outcome.code, reason, hold_seconds(1, None)))
        return outcome

    def _judge_probe(self, hold: SenderHold, outcome: Outcome) -> Outcome:
        outcome = put_down_to_sender(outcome, hold)
        if isinstance(outcome, Accepted):
            self.unwritten.append(lambda holds: self._end(holds, hold))
        if isinstance(outcome, Deferred) and outcome.hold:
            return self._refuse_sender(outcome, tries=hold.tries + 1, away=hold.elsewhere)
        if isinstance(outcome, Deferred | InDoubt) and outcome.outage:
            # Nothing was accepted since the last trouble: one more is enough.
            self._order(self._cut_off(outcome.reason, tries=hold.tries + 1))
        return outcome

    def _refuse_sender(self, outcome: Deferred, *, tries: int, away: bool = False) -> Deferred:
        """The hold keeps the letter waiting, so it is due as soon as the hold is over, behind the others."""
        order = HoldOrder(
            outcome.code, outcome.reason, hold_seconds(tries, outcome.retry_after), probe=tries > 1
        )
        if self.quiet_time is not None and (outcome.outage or away):
            order = order._replace(seconds=away_seconds(tries, self.quiet_time), elsewhere=True)
        self._order(order)
        return replace(outcome, retry_after=0.0)

    def _cut_off(self, reason: str, *, tries: int) -> HoldOrder:
        """The provider is in trouble: the letters leave through the second region, or wait."""
        if self.quiet_time is None:
            return HoldOrder(OUTAGE, reason, outage_seconds(tries), probe=tries > 1)
        seconds = away_seconds(tries, self.quiet_time)
        return HoldOrder(OUTAGE, reason, seconds, probe=tries > 1, elsewhere=True)

    def _order(self, order: HoldOrder) -> None:
        """Of many letters that meet the same refusal at once, one is enough to hold the sender."""
        if order.probe or not self.unwritten:
            self.unwritten.append(lambda holds: self._begin(holds, order))

    def write_down(self) -> None:
        """Make it durable. Raises Unavailable; then the rest is still to be written."""
        while self.unwritten:
            assert self._holds is not None
            self.unwritten[0](self._holds)
            self.unwritten.popleft()

    def _begin(self, holds: SenderHolds, order: HoldOrder) -> None:
        hold = holds.hold(self.key, order)
        if (hold.held_at, hold.tries) != self._logged:
            self._logged = (hold.held_at, hold.tries)
            told = {"sender": self.key, "code": hold.code, "reason": hold.reason}
            until = {"next_try": hold.next_try_at, "after_mending": f"sendonce sender release {self.key}"}
            what = "the sender moves to its second region" if hold.elsewhere else "the sender is held"
            log.error(what, extra={"fields": {**told, **until}})

    def _end(self, holds: SenderHolds, hold: SenderHold) -> None:
        if holds.end(hold):
            what = "the sender is back in its own region" if hold.elsewhere else "the sender is held no more"
            log.warning(what, extra={"fields": {"sender": self.key}})
