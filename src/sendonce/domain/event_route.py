"""How long the provider's events have been received without a break.

A missing event proves nothing about a time in which nobody could have received it. Whoever receives
events says so every few seconds; from these notes follow the unbroken stretch that lasts till now, and
how long the break before it was.

    receiver 1   ├──────────┤                      seen last at the end of its line
    receiver 2                   ├────────────┤
    receiver 3                           ├─────────► now
                            └gap─┘└─ since
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

ATTEND_EVERY = 5.0
"""Seconds between two notes of a receiver."""
SILENT_AFTER = timedelta(seconds=150)
"""A receiver that has not been heard of for so long does not receive. A queue is asked every 20 s, and a
platform that sleeps between requests is woken once a minute."""
PUSH_PATIENCE = timedelta(minutes=30)
"""Breaks up to here lose nothing by push: Amazon SNS tries an HTTPS endpoint for an hour."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """From when until when somebody received. ``durable``: events wait in a queue while nobody does."""

    since: datetime
    seen: datetime
    durable: bool


@dataclass(frozen=True, slots=True)
class RouteWatch:
    """Events have been received since ``since``. ``gap`` is the break before; None: there was nobody."""

    since: datetime
    gap: timedelta | None
    durable: bool

    def may_have_missed(self, moment: datetime) -> bool:
        """Whether an event of ``moment`` or later can have been given up by the provider."""
        if self.durable or self.since <= moment:
            return False
        return self.gap is None or self.gap > PUSH_PATIENCE


def watch(receivers: Iterable[Receiver], now: datetime) -> RouteWatch | None:
    """The stretch that lasts till ``now``; None if nobody receives.

    Two receivers make one stretch only where the earlier was seen after the later had begun: a service
    that is started again was down in between, however short.
    """
    newest_first = sorted(receivers, key=lambda receiver: receiver.seen, reverse=True)
    if not newest_first or now - newest_first[0].seen > SILENT_AFTER:
        return None
    since, durable = newest_first[0].since, newest_first[0].durable
    for receiver in newest_first[1:]:
        if receiver.seen < since:
            return RouteWatch(since, since - receiver.seen, durable)
        since, durable = min(since, receiver.since), durable and receiver.durable
    return RouteWatch(since, None, durable)
