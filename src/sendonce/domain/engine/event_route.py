"""For which times a missing event proves anything: those in which events were received without a break.

Whoever receives events notes it every few seconds. A receiver's notes form one row until it breaks: it
answered 5xx, could not write its note, or was silent for more than 15 seconds. Then a new row begins.

    receiver 1   ├──────────┤5xx├─────────┤ lost          one row each
    receiver 2        ├──────────────────────────► now
    received     ├──────────┤   ├─────────┤  ├───► now    a break of one is a break of all

A push that met the broken receiver may be lost, whoever else listened then, because SNS gives up within a
minute. A receiver that signs off breaks nothing as long as another one goes on. A queue keeps its events
while nobody looks: there only a pause of days is a break.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

ATTEND_EVERY = 5.0
"""Seconds between two notes of a receiver."""
LONGEST_SILENCE = timedelta(seconds=15)
"""A receiver of pushed events that was silent for longer was away."""
QUEUE_PATIENCE = timedelta(days=3)
"""How long an unread queue is trusted to keep events: SQS does so for four days by default."""


def longest_silence(*, durable: bool) -> timedelta:
    return QUEUE_PATIENCE if durable else LONGEST_SILENCE


@dataclass(frozen=True, slots=True)
class Receiver:
    """One row of notes. ``durable``: events wait in a queue, and ``seen`` is when it was last found empty."""

    name: str
    since: datetime
    seen: datetime
    durable: bool = False
    left: bool = False


class Coverage(Enum):
    """Whether events were received through all of a span of time."""

    WHOLE = "whole"
    SO_FAR = "so far"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Listening:
    """What the notes tell at the time ``now``."""

    receivers: Sequence[Receiver]
    now: datetime

    def covers(self, start: datetime, end: datetime) -> Coverage:
        """How the span was listened to, by push or by queue, whichever did better."""
        found = {self._by_queue(start, end), self._by_push(start, end)}
        return next(each for each in Coverage if each in found)

    def _by_queue(self, start: datetime, end: datetime) -> Coverage:
        rows = [each for each in self.receivers if each.durable and each.since <= start <= self._end(each)]
        if any(each.seen >= end for each in rows):
            return Coverage.WHOLE
        return Coverage.SO_FAR if any(map(self._goes_on, rows)) else Coverage.BROKEN

    def _by_push(self, start: datetime, end: datetime) -> Coverage:
        pushed = sorted((each for each in self.receivers if not each.durable), key=lambda each: each.since)
        reach: datetime | None = None
        for each in pushed:
            if each.since <= (reach or start) and self._end(each) >= start:
                reach = max(reach or start, self._end(each))
        last = min(end, self.now)
        if reach is None or reach < last or self._breaks(pushed, start, last):
            return Coverage.BROKEN
        # What happened since a receiver's last note is not known yet.
        proven = min((each.seen for each in pushed if self._goes_on(each)), default=reach)
        return Coverage.WHOLE if min(reach, proven) >= end else Coverage.SO_FAR

    def _breaks(self, pushed: Sequence[Receiver], start: datetime, end: datetime) -> bool:
        for number, each in enumerate(pushed):
            if each.left or self._goes_on(each):
                continue
            following = [later.since for later in pushed[number + 1 :] if later.name == each.name]
            back = min(following, default=each.seen + LONGEST_SILENCE)
            if each.seen <= end and max(back, each.seen) >= start:
                return True
        return False

    def _end(self, receiver: Receiver) -> datetime:
        return self.now if self._goes_on(receiver) else receiver.seen

    def _goes_on(self, receiver: Receiver) -> bool:
        if receiver.left or self.now - receiver.seen > longest_silence(durable=receiver.durable):
            return False
        same = [each for each in self.receivers if each.name == receiver.name]
        return receiver.since >= max(each.since for each in same)
